"""Modularity and explicitness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray, Kind
from disentwine.metrics._inputs import (
    BINS,
    checked,
    class_table,
    classes_to_predict,
    code_classes,
    features_of,
    information_matrix,
    noise_floor,
    varying,
)


def modularity(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    bins: int = BINS,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Modularity: whether each latent has information on one factor at most.

    With $m_{if} = I(z_i; v_f)$ and $\theta_i = \max_f m_{if}$, the score is the mean over latents of
    $1 - \frac{\sum_f (m_{if} - t_{if})^2}{\theta_i^2 (K - 1)}$, where $t_{if}$ is $\theta_i$ at the
    best factor and 0 elsewhere. A constant latent has no information and is left out.

    Reference: Learning Deep Disentangled Embeddings with the F-Statistic Loss, K. Ridgeway and
    M. Mozer, 2018, section 2.1.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        discrete_codes: whether the latents are codes of a quantizer, whose numbers have no order.
        bins: of each latent, and of each continuous factor.
        seed: of the permutation for the chance level.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> modularity(v, v).value
    1.0
    """
    z, v = checked(latents, factors)

    def matrix(z: FloatArray, v: FloatArray) -> FloatArray:
        binned = code_classes(z, bins=bins, discrete_codes=discrete_codes)
        m = information_matrix(binned, class_table(v, bins=bins))
        return np.where(varying(z)[:, None], m, 0.0)  # exactly: no rounding may count

    def estimate(z: FloatArray, v: FloatArray) -> float:
        m = matrix(z, v)
        informed = m[m.max(axis=1) > 0]
        if len(informed) == 0:
            return 0.0
        if m.shape[1] == 1:
            return 1.0
        largest = informed.max(axis=1)
        others = (informed**2).sum(axis=1) - largest**2
        return float((1 - others / (largest**2 * (m.shape[1] - 1))).mean())

    return Score(
        "modularity",
        estimate(z, v),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={"matrix": matrix(z, v)},
    )


def explicitness(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    kinds: Sequence[Kind] | None = None,
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Explicitness: accuracy of linear classifiers of each factor from all latents.

    The area under the ROC curve of each value of each factor, one against the rest, averaged over
    values and factors, and scaled so that chance is 0: $2\,\overline{\mathrm{AUC}} - 1$. A factor with
    a single value among the training samples scores at chance.

    Reference: Learning Deep Disentangled Embeddings with the F-Statistic Loss, K. Ridgeway and
    M. Mozer, 2018, section 2.1.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        discrete_codes: whether the latents are codes of a quantizer, whose numbers have no order.
        kinds: of the factors; only categorical ones keep all their values, however many.
        train: most samples to train on.
        test: most samples to measure on.
        seed: of the split into both.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    >>> explicitness(v, v).value
    1.0
    """
    z, v = checked(latents, factors)

    def estimate(z: FloatArray, v: FloatArray) -> float:
        order = np.random.default_rng([seed, 0]).permutation(len(z))
        cut = min(train, round(len(z) * train / (train + test)))
        fitted, held_out = order[:cut], order[cut : cut + test]
        features = features_of(z, fitted, discrete_codes=discrete_codes)
        areas = [
            _mean_area(features, classes, fitted, held_out)
            for classes in classes_to_predict(v, kinds).T
        ]
        return float(2 * np.mean(areas) - 1)

    return Score(
        "explicitness",
        estimate(z, v),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
    )


def _mean_area(
    z: Any, y: NDArray[np.int64], fitted: NDArray[np.int64], held_out: NDArray[np.int64]
) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    if len(np.unique(y[fitted])) < 2:  # nothing to learn: chance
        return 0.5
    model = LogisticRegression(C=100, max_iter=500).fit(z[fitted], y[fitted])
    scores = model.predict_proba(z[held_out])
    areas = [
        roc_auc_score(y[held_out] == value, scores[:, column])
        for column, value in enumerate(model.classes_)
        if 0 < (y[held_out] == value).sum() < len(held_out)
    ]
    return float(np.mean(areas)) if areas else 0.5
