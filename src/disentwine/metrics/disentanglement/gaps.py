"""Gap metrics: mutual information gap (MIG) and separated attribute predictability (SAP)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray, Kind
from disentwine.metrics._inputs import (
    BINS,
    check_counts,
    checked,
    class_table,
    code_classes,
    entropy,
    gap_of_best_two,
    information_matrix,
    kinds_of,
    noise_floor,
    varying,
)

CUTS = 1000
"""Groups of neighbouring values between which thresholds are sought."""


def mig(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    bins: int = BINS,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""MIG: gap in mutual information between the two most informative latents of each factor.

    $\frac1K \sum_k \frac{1}{H(v_k)} \big(I(z_{(1)}; v_k) - I(z_{(2)}; v_k)\big)$, with latents in
    `bins` bins of equal width.

    Reference: Isolating Sources of Disentanglement in VAEs, R. Chen et al., 2018, eq. 6.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        discrete_codes: whether the latents are codes of a quantizer, whose numbers have no order.
        bins: of each latent, and of each continuous factor.
        seed: of the permutation for the chance level.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    Details: the `matrix` of $I(z_i; v_k) / H(v_k)$, the mean chance level of its entries,
    `matrix_noise_floor`, and the `gaps` of each factor.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> round(mig(v, v).value, 6)
    1.0
    """
    z, v = checked(latents, factors)
    check_counts(bins=bins)

    def matrix(z: FloatArray, v: FloatArray) -> FloatArray:
        binned = code_classes(z, bins=bins, discrete_codes=discrete_codes)
        classes = class_table(v, bins=bins)
        entropies = np.array([entropy(column) for column in classes.T])
        return np.asarray(information_matrix(binned, classes) / entropies)

    scores = matrix(z, v)
    chance = noise_floor(matrix, z, v, seed=seed) if floor else None
    return Score(
        "mig",
        float(gap_of_best_two(scores).mean()),
        n=len(z),
        noise_floor=None if chance is None else float(gap_of_best_two(chance).mean()),
        details={
            "matrix": scores,
            "matrix_noise_floor": None if chance is None else float(chance.mean()),
            "gaps": gap_of_best_two(scores),
        },
    )


def sap(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    inactive: float = 0.0,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""SAP: score gap between the two most predictive latents of each factor (Kumar et al., 2018).

    $S_{ij}$ is the squared correlation $\frac{\mathrm{Cov}(z_i, v_j)^2}{\mathrm{Var}(z_i)
    \mathrm{Var}(v_j)}$ for continuous and ordinal factors, the balanced accuracy of the best
    thresholds for binary and categorical ones, and 0 for an inactive latent. The score is the mean
    gap of each column's best two entries.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018, section 3.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        kinds: of the factors; by default those of two values are binary, others continuous.
        inactive: a latent of less variance counts as constant as well. Under a standard normal
            prior, latents are inactive below `ACTIVE_VARIANCE` = 0.01: an inactive latent still
            follows a factor, by a thousandth of its width, and would halve the gap of the latent
            that encodes it.
        seed: of the permutation for the chance level.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    Details: the score `matrix`, and the score with every factor taken `as_continuous`. A perfect
    latent of a factor with c classes has a gap of 1 - 1/c at most, since the second best latent is
    right by chance; implementations with a linear SVC give a perfect latent a far lower score.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> sap(v, v).value
    1.0
    """
    z, v = checked(latents, factors)
    kinds = kinds_of(v, kinds)
    active = varying(z) & (z.var(axis=0) >= inactive)

    def estimate(z: FloatArray, v: FloatArray) -> float:
        return float(gap_of_best_two(_matrix(z, v, kinds, active)).mean())

    matrix = _matrix(z, v, kinds, active)
    continuous = gap_of_best_two(_squared_correlations(z, v, active)).mean()
    return Score(
        "sap",
        float(gap_of_best_two(matrix).mean()),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={
            "matrix": matrix,
            "gaps": gap_of_best_two(matrix),
            "as_continuous": float(continuous),
        },
    )


def _matrix(
    z: FloatArray, v: FloatArray, kinds: Sequence[Kind], active: NDArray[np.bool_]
) -> FloatArray:
    matrix = _squared_correlations(z, v, active)
    for j, kind in enumerate(kinds):
        if kind in ("binary", "categorical"):
            classes = np.unique(v[:, j], return_inverse=True)[1]
            matrix[:, j] = [
                threshold_accuracy(latent, classes) if is_active else 0.0
                for latent, is_active in zip(z.T, active, strict=True)
            ]
    return matrix


def _squared_correlations(z: FloatArray, v: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
    z, v = z - z.mean(axis=0), v - v.mean(axis=0)
    variance = np.where(active, (z**2).mean(axis=0), np.inf)
    squares = (z.T @ v / len(z)) ** 2
    return np.minimum(squares / np.outer(variance, (v**2).mean(axis=0)), 1.0)


def threshold_accuracy(latent: FloatArray, classes: NDArray[np.int64]) -> float:
    r"""The balanced accuracy of the best classifier that divides one latent into intervals.

    With c classes there are at most c intervals, each given to a class; $\frac1c \sum_a
    P(\hat y = a | y = a)$ is maximised exactly by dynamic programming over the sorted latents (cut
    only between `CUTS` groups of neighbours when there are more distinct values).

    >>> threshold_accuracy(np.array([0.1, 0.2, 0.7, 0.9]), np.array([1, 1, 0, 0]))
    1.0
    """
    count = int(classes.max()) + 1
    ranks = np.unique(latent, return_inverse=True)[1]
    groups = ranks * min(CUTS, ranks.max() + 1) // (ranks.max() + 1)
    # The share of each class that lies in each group: what an interval over the group gains.
    counts = np.bincount(groups * count + classes, minlength=(groups.max() + 1) * count)
    gains = counts.reshape(-1, count) / np.bincount(classes, minlength=count)
    best = np.zeros((count, count))  # by number of cuts made, by class of the current interval
    for gain in gains:
        before = best.max(axis=1, keepdims=True)
        best[1:] = np.maximum(best[1:], before[:-1])
        best += gain
    return float(best.max() / count)
