"""Separated attribute predictability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray, Kind
from disentwine.metrics._inputs import checked, gap_of_best_two, kinds_of, noise_floor, varying

CUTS = 1000
"""Thresholds are sought between so many groups of neighbouring codes."""


def sap(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    inactive: float = 0.0,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""How much better each factor is read off its best code than off the second best.

    $S_{ij}$ is the squared correlation $\frac{\mathrm{Cov}(z_i, v_j)^2}{\mathrm{Var}(z_i)
    \mathrm{Var}(v_j)}$ for continuous and ordinal factors, the balanced accuracy of the best
    thresholds for binary and categorical ones, and 0 for an inactive code. The score is the mean
    gap of each column's best two entries.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018, section 3.

    Arguments:
        codes: (n, d).
        factors: (n, k).
        kinds: of the factors; by default those of two values are binary, others continuous.
        inactive: a code of less variance counts as constant as well. Codes of a model whose prior is a
            standard normal are inactive below `ALIVE` = .01: a unit that the model does not use still
            follows a factor, by a thousandth of its width, and would halve the gap of the unit that
            has it.
        seed: of the noise floor.
        floor: also measure the noise floor, which doubles the time.

    Details: the score `matrix`, and the score with every factor taken `as_continuous`. A perfect
    code of a factor with c classes has a gap of 1 - 1/c at most, since the second best code is right
    by chance; public code that reads factors with a linear SVC scores a perfect code far lower.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> sap(v, v).value
    1.0
    """
    z, v = checked(codes, factors)
    kinds = kinds_of(v, kinds)
    alive = varying(z) & (z.var(axis=0) >= inactive)

    def estimate(z: FloatArray, v: FloatArray) -> float:
        return float(gap_of_best_two(_matrix(z, v, kinds, alive)).mean())

    matrix = _matrix(z, v, kinds, alive)
    continuous = gap_of_best_two(_squared_correlations(z, v, alive)).mean()
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
    z: FloatArray, v: FloatArray, kinds: Sequence[Kind], alive: NDArray[np.bool_]
) -> FloatArray:
    matrix = _squared_correlations(z, v, alive)
    for j, kind in enumerate(kinds):
        if kind in ("binary", "categorical"):
            classes = np.unique(v[:, j], return_inverse=True)[1]
            matrix[:, j] = [
                threshold_accuracy(code, classes) if lives else 0.0
                for code, lives in zip(z.T, alive, strict=True)
            ]
    return matrix


def _squared_correlations(z: FloatArray, v: FloatArray, alive: NDArray[np.bool_]) -> FloatArray:
    z, v = z - z.mean(axis=0), v - v.mean(axis=0)
    variance = np.where(alive, (z**2).mean(axis=0), np.inf)
    squares = (z.T @ v / len(z)) ** 2
    return np.minimum(squares / np.outer(variance, (v**2).mean(axis=0)), 1.0)


def threshold_accuracy(code: FloatArray, classes: NDArray[np.int64]) -> float:
    r"""The balanced accuracy of the best classifier that cuts one code into intervals.

    With c classes there are at most c intervals, each given to a class; $\frac1c \sum_a
    P(\hat y = a | y = a)$ is maximised exactly by dynamic programming over the sorted codes (cut
    only between `CUTS` groups of neighbours when there are more distinct values).

    >>> threshold_accuracy(np.array([0.1, 0.2, 0.7, 0.9]), np.array([1, 1, 0, 0]))
    1.0
    """
    count = int(classes.max()) + 1
    ranks = np.unique(code, return_inverse=True)[1]
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
