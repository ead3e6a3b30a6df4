"""Information-theoretic modularity, explicitness and compactness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.contracts.dataset import FloatArray, Kind
from disentwine.contracts.score import Score
from disentwine.errors import UsageError
from disentwine.metrics.information import entropy, mutual_information
from disentwine.metrics.inputs import (
    BINS,
    checked,
    class_table,
    code_classes,
    kinds_of,
    noise_floor,
    varying,
)
from disentwine.metrics.linear import explained

MOST_SAMPLES = 10_000
"""Enough for the nearest-neighbour estimate; larger tables are sampled."""

LEAST_RANGE = 1 / 20
"""Of the largest range of a code; what stays within less is not used, as in the authors' own code."""


def info_mec(
    codes: ArrayLike,
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

    $\mathrm{NMI}_{ij} = I(s_i; z_j) / H(s_i)$ for factor i and code j.
    InfoM $= \big(\frac{1}{n_z} \sum_j \frac{\max_i \mathrm{NMI}_{ij}}{\sum_i \mathrm{NMI}_{ij}} -
    \frac{1}{n_s}\big) / \big(1 - \frac{1}{n_s}\big)$ over active codes, whose range is above 1/20 of the
    largest; InfoC is the same with factors and codes exchanged; InfoE is the share of each factor's
    uncertainty that a linear model of all codes removes, on samples that it was not fitted to.

    Reference: Disentanglement via Latent Quantization, K. Hsu et al., 2023, section 4.

    Arguments:
        codes: (n, d).
        factors: (n, k).
        discrete_codes: codes are names, as those of a quantizer, so that information is counted;
            otherwise it is estimated from nearest neighbours (Ross, 2014).
        kinds: of the factors; by default those of two values are binary, others continuous.
        bins: of each continuous factor.
        least_range: a code is active above this share of the largest range, $\max z - \min z$; at 0 all
            but constant ones are, as names always are.
        seed: of the estimate, and of the samples that are held out.
        floor: also measure the noise floor, which doubles the time.

    The value is InfoM; `info_m`, `info_e`, `info_c`, the noise floor of each in `floors`, and the
    `matrix` (codes by factors) are details, and which codes are `active`.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)] * 20, float)
    >>> round(info_mec(v, v, discrete_codes=True).value, 6)
    1.0
    """
    z, v = checked(codes, factors)
    if not 0 <= least_range < 1:
        raise UsageError(f"least_range must be from 0 to below 1; got {least_range}")
    kinds = kinds_of(v, kinds)
    if len(z) > MOST_SAMPLES:
        some = np.random.default_rng([seed, 0]).choice(len(z), MOST_SAMPLES, replace=False)
        z, v = z[some], v[some]

    alive = varying(z)
    ranges = np.where(alive, np.ptp(z, axis=0), 0.0)
    active = alive if discrete_codes else ranges > least_range * ranges.max()
    if not active.any():
        nothing = {"info_m": 0.0, "info_e": 0.0, "info_c": 0.0}
        details = {**nothing, "floors": nothing} if floor else nothing
        return Score("info-mec", 0.0, n=len(z), noise_floor=0.0, details=details)

    def measure(z: FloatArray, v: FloatArray) -> dict[str, Any]:
        matrix = np.zeros((z.shape[1], v.shape[1]))
        matrix[alive] = _information(
            z[:, alive], v, bins=bins, discrete_codes=discrete_codes, seed=seed
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
    """NMI of each code with each factor, (d, k)."""
    columns = []
    for y in class_table(v, bins=bins).T:
        if discrete_codes:
            names = code_classes(z, bins=bins, discrete_codes=True)
            column = np.array([mutual_information(c, y) for c in names.T])
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
