"""Mutual information gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.metrics._inputs import (
    BINS,
    check_counts,
    checked,
    class_table,
    code_classes,
    entropy,
    gap_of_best_two,
    information_matrix,
    noise_floor,
)


def mig(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    discrete_codes: bool = False,
    bins: int = BINS,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""How much more the best code knows of each factor than the second best.

    $\frac1K \sum_k \frac{1}{H(v_k)} \big(I(z_{(1)}; v_k) - I(z_{(2)}; v_k)\big)$, codes cut into
    `bins` bins of equal width.

    Reference: Isolating Sources of Disentanglement in VAEs, R. Chen et al., 2018, eq. 6.

    Arguments:
        codes: (n, d).
        factors: (n, k).
        discrete_codes: codes are names, as those of a quantizer, whose numbers mean nothing.
        bins: of each code, and of each continuous factor.
        seed: of the noise floor.
        floor: also measure the noise floor, which doubles the time.

    Details: the `matrix` of $I(z_i; v_k) / H(v_k)$, what chance gives a cell of it on average,
    `matrix_noise_floor`, and the `gaps` of each factor. The noise floor of the score is a gap of chances.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> round(mig(v, v).value, 6)
    1.0
    """
    z, v = checked(codes, factors)
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
