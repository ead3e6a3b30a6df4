"""Mutual information gap (MIG)."""

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
