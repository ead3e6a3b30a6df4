"""Disentanglement, completeness and informativeness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray, Kind
from disentwine.errors import UsageError
from disentwine.metrics._inputs import checked, classes_to_predict, code_classes, noise_floor

Learner = Literal["histogram-boosting", "gradient-boosting"]
MOST_CODES = 255
"""Most codes of one latent, in histograms."""


def dci(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    kinds: Sequence[Kind] | None = None,
    learner: Learner = "histogram-boosting",
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Disentanglement, completeness and informativeness, from importances of latents for factors.

    $R_{ij}$ is the importance of latent i when boosted trees predict factor j from all latents.
    Disentanglement is $\sum_i \rho_i (1 - H_K(P_{i\cdot}))$ with $P_{i\cdot}$ row i of R made a
    distribution, $H_K$ its entropy to base K and $\rho_i$ the row's share of R; completeness is the
    same over columns; informativeness is the accuracy on held-out samples.

    Reference: A Framework for the Quantitative Evaluation of Disentangled Representations, C. Eastwood
    and C. Williams, 2018, section 2.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        discrete_codes: whether the latents are codes of a quantizer, whose numbers have no order.
        kinds: of the factors; only categorical ones keep all their values, however many.
        learner: "gradient-boosting" is the original of later studies, and takes minutes.
        train: most samples to learn from.
        test: most samples to measure informativeness on.
        seed: of the split into both.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    The value is disentanglement; `completeness`, `informativeness` and the importance `matrix` are
    details.

    >>> v = np.random.default_rng(0).integers(0, 4, (400, 2)).astype(float)
    >>> dci(v, v).value > 0.99
    True
    """
    z, v = checked(latents, factors)
    if discrete_codes:
        z = _code_numbers(z, learner)

    def measure(z: FloatArray, v: FloatArray) -> dict[str, Any]:
        order = np.random.default_rng([seed, 0]).permutation(len(z))
        cut = min(train, round(len(z) * train / (train + test)))
        fitted, held_out = order[:cut], order[cut : cut + test]
        classes = classes_to_predict(v, kinds)
        columns, accuracies = [], []
        for y in classes.T:
            importance, accuracy = _importance(z, y, fitted, held_out, learner, discrete_codes)
            columns.append(importance)
            accuracies.append(accuracy)
        matrix = np.stack(columns, axis=1)
        return {
            "disentanglement": _concentration(matrix),
            "completeness": _concentration(matrix.T),
            "informativeness": float(np.mean(accuracies)),
            "matrix": matrix,
        }

    found = measure(z, v)
    return Score(
        "dci",
        found["disentanglement"],
        n=len(z),
        noise_floor=noise_floor(
            lambda z, v: float(measure(z, v)["disentanglement"]), z, v, seed=seed
        )
        if floor
        else None,
        details=found,
    )


def _code_numbers(z: FloatArray, learner: Learner) -> FloatArray:
    """Codes as numbers from 0, which trees treat as categories."""
    ranks = code_classes(z, bins=0, discrete_codes=True)
    if learner != "histogram-boosting" or ranks.max() >= MOST_CODES:
        raise UsageError(
            f"quantized codes need the learner histogram-boosting, and at most {MOST_CODES} codes"
        )
    return ranks.astype(np.float64)


def _concentration(matrix: FloatArray) -> float:
    """Mean over rows, weighted by their share, of one less the entropy of the row."""
    total = matrix.sum()
    if total == 0 or matrix.shape[1] == 1:
        return 0.0 if total == 0 else 1.0
    p = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    logs = np.log(np.where(p > 0, p, 1.0)) / np.log(matrix.shape[1])
    return float(((1 + (p * logs).sum(axis=1)) * matrix.sum(axis=1) / total).sum())


def _importance(
    z: FloatArray,
    y: NDArray[np.int64],
    fitted: NDArray[np.int64],
    held_out: NDArray[np.int64],
    learner: Learner,
    discrete_codes: bool,
) -> tuple[FloatArray, float]:
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier

    known = np.unique(y[fitted])
    if len(known) < 2:  # nothing to learn, and not every learner takes that
        return np.zeros(z.shape[1]), float(np.isin(y[held_out], known).mean())
    if learner == "gradient-boosting":
        model: Any = GradientBoostingClassifier(random_state=0).fit(z[fitted], y[fitted])
        return model.feature_importances_, float(model.score(z[held_out], y[held_out]))
    model = HistGradientBoostingClassifier(
        max_iter=20,
        max_leaf_nodes=8,
        learning_rate=0.3,
        early_stopping=False,
        random_state=0,
        categorical_features=np.full(z.shape[1], discrete_codes),
    ).fit(z[fitted], y[fitted])
    gains = _split_gains(model._predictors, z.shape[1])
    return gains / max(gains.sum(), np.finfo(float).tiny), float(
        model.score(z[held_out], y[held_out])
    )


def _split_gains(predictors: Sequence[Sequence[Any]], d: int) -> FloatArray:
    """(d,) how much the splits on each latent reduced the loss, over all trees."""
    gains = np.zeros(d)
    for trees in predictors:
        for tree in trees:
            splits = tree.nodes[tree.nodes["is_leaf"] == 0]
            np.add.at(gains, splits["feature_idx"], splits["gain"])
    return gains
