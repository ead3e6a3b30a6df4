"""InfoMEC: modularity, explicitness and compactness from mutual information."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray, Kind
from disentwine.errors import UsageError
from disentwine.metrics._inputs import (
    BINS,
    checked,
    class_table,
    code_classes,
    entropy,
    features_of,
    kinds_of,
    mutual_information,
    noise_floor,
    varying,
)

FITTED = 2 / 3
"""Share of samples that models are fitted to; the others measure them."""


def explained(
    latents: FloatArray,
    factors: FloatArray,
    kinds: Sequence[Kind],
    *,
    discrete_codes: bool = False,
    seed: int = 0,
) -> float:
    r"""$\frac1K \sum_k \big(1 - \frac{\ell_k(z)}{\ell_k(\emptyset)}\big)$: one less the loss of a linear
    model of the latents over that of a constant prediction, both on held-out samples.

    The loss is the log loss of classes, and the squared error of numbers; a share below 0 counts
    as 0.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        kinds: of the factors.
        discrete_codes: whether the latents are codes of a quantizer; each code has a weight.
        seed: of the samples that are held out.

    >>> z = np.random.default_rng(0).normal(size=(300, 3))
    >>> round(explained(z, z @ np.ones((3, 1)), ["continuous"]), 3)
    1.0
    """
    order = np.random.default_rng([seed, 2]).permutation(len(latents))
    fitted, held_out = np.split(order, [round(FITTED * len(order))])
    features = features_of(latents, fitted, discrete_codes=discrete_codes)
    shares = [
        (_of_classes if kind in ("binary", "categorical") else _of_numbers)(
            features, column, fitted, held_out
        )
        for column, kind in zip(factors.T, kinds, strict=True)
    ]
    return float(np.clip(shares, 0, 1).mean())


def _of_classes(
    features: Any, column: FloatArray, fitted: IndexArray, held_out: IndexArray
) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    known, counts = np.unique(column[fitted], return_counts=True)
    held_out = held_out[np.isin(column[held_out], known)]
    if len(known) < 2 or len(held_out) == 0:
        return 0.0
    y = np.searchsorted(known, column)
    model = LogisticRegression(C=100, max_iter=2000).fit(features[fitted], y[fitted])
    share = np.broadcast_to(counts / counts.sum(), (len(held_out), len(known)))
    loss, blind = (
        log_loss(y[held_out], p, labels=range(len(known)))
        for p in (model.predict_proba(features[held_out]), share)
    )
    return float(1 - loss / blind)


def _of_numbers(
    features: Any, column: FloatArray, fitted: IndexArray, held_out: IndexArray
) -> float:
    from sklearn.linear_model import Ridge

    # A penalty as light as one more sample, without which many codes would fit anything.
    model = Ridge(alpha=1.0).fit(features[fitted], column[fitted])
    blind = np.square(column[held_out] - column[fitted].mean()).mean()
    loss = np.square(column[held_out] - model.predict(features[held_out])).mean()
    return float(1 - loss / blind) if blind > 0 else 0.0


MOST_SAMPLES = 10_000
"""Enough for the nearest-neighbour estimate; larger tables are sampled."""

LEAST_RANGE = 1 / 20
"""Share of the largest range below which a latent is inactive, as in the authors' code."""


def info_mec(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    kinds: Sequence[Kind] | None = None,
    bins: int = BINS,
    least_range: float = LEAST_RANGE,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Modularity, explicitness and compactness from normalised mutual information.

    $\mathrm{NMI}_{ij} = I(s_i; z_j) / H(s_i)$ for factor i and latent j.
    InfoM $= \big(\frac{1}{n_z} \sum_j \frac{\max_i \mathrm{NMI}_{ij}}{\sum_i \mathrm{NMI}_{ij}} -
    \frac{1}{n_s}\big) / \big(1 - \frac{1}{n_s}\big)$ over active latents, whose range is above 1/20 of the
    largest; InfoC is the same with factors and latents exchanged; InfoE is the share of each factor's
    uncertainty that a linear model of all latents removes, on samples that it was not fitted to.

    Reference: Disentanglement via Latent Quantization, K. Hsu et al., 2023, section 4.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        discrete_codes: whether the latents are codes of a quantizer, so that information is counted;
            otherwise it is estimated from nearest neighbours (Ross, 2014).
        kinds: of the factors; by default those of two values are binary, others continuous.
        bins: of each continuous factor.
        least_range: a latent is active above this share of the largest range, $\max z - \min z$; at 0
            all but constant ones are, as quantized codes always are.
        seed: of the estimate, and of the samples that are held out.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    The value is InfoM; `info_m`, `info_e`, `info_c`, the chance level of each in `floors`, and the
    `matrix` (latents by factors) are details, and which latents are `active`.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)] * 20, float)
    >>> round(info_mec(v, v, discrete_codes=True).value, 6)
    1.0
    """
    z, v = checked(latents, factors)
    if not 0 <= least_range < 1:
        raise UsageError(f"least_range must be from 0 to below 1; got {least_range}")
    kinds = kinds_of(v, kinds)
    if len(z) > MOST_SAMPLES:
        some = np.random.default_rng([seed, 0]).choice(len(z), MOST_SAMPLES, replace=False)
        z, v = z[some], v[some]

    varies = varying(z)
    ranges = np.where(varies, np.ptp(z, axis=0), 0.0)
    active = varies if discrete_codes else ranges > least_range * ranges.max()
    if not active.any():
        nothing = {"info_m": 0.0, "info_e": 0.0, "info_c": 0.0}
        details = {**nothing, "floors": nothing} if floor else nothing
        return Score("info-mec", 0.0, n=len(z), noise_floor=0.0, details=details)

    def measure(z: FloatArray, v: FloatArray) -> dict[str, Any]:
        matrix = np.zeros((z.shape[1], v.shape[1]))
        matrix[varies] = _information(
            z[:, varies], v, bins=bins, discrete_codes=discrete_codes, seed=seed
        )
        return {
            "info_m": _share_of_best(matrix[active], axis=1),
            "info_e": explained(z, v, kinds, discrete_codes=discrete_codes, seed=seed),
            "info_c": _share_of_best(matrix[active], axis=0),
            "matrix": matrix,
        }

    found = measure(z, v)
    floors = noise_floor(measure, z, v, seed=seed) if floor else {}
    floors.pop("matrix", None)
    return Score(
        "info-mec",
        found["info_m"],
        n=len(z),
        noise_floor=floors.get("info_m"),
        details={**found, "active": active.tolist(), "floors": floors},
    )


def _information(
    z: FloatArray, v: FloatArray, *, bins: int, discrete_codes: bool, seed: int
) -> FloatArray:
    """NMI of each latent with each factor, (d, k)."""
    columns = []
    for y in class_table(v, bins=bins).T:
        if discrete_codes:
            codes = code_classes(z, bins=bins, discrete_codes=True)
            column = np.array([mutual_information(c, y) for c in codes.T])
        else:
            column = _neighbour_information(z, y, seed)
        columns.append(column / entropy(y))
    return np.stack(columns, axis=1)


def _share_of_best(matrix: FloatArray, *, axis: int) -> float:
    """Mean of the largest entry's share along an axis, scaled so that an even share is 0."""
    size = matrix.shape[axis]
    if size == 1:
        return 1.0
    total = matrix.sum(axis=axis)
    informed = total > 0
    if not informed.any():
        return 0.0
    shares = matrix.max(axis=axis)[informed] / total[informed]
    return float((shares.mean() - 1 / size) / (1 - 1 / size))


def _neighbour_information(z: FloatArray, y: NDArray[np.int64], seed: int) -> FloatArray:
    from sklearn.feature_selection import mutual_info_classif

    if np.bincount(y).max() < 2:  # no two samples share a class: there are no neighbours to count
        return np.zeros(z.shape[1])
    information: FloatArray = mutual_info_classif(z, y, discrete_features=False, random_state=seed)
    return information
