"""Interventional robustness score (IRS)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.metrics._inputs import BINS, checked, class_table, noise_floor, varying


def irs(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    quantile: float = 0.99,
    bins: int = BINS,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Robustness of each latent to changes of all factors but one.

    For latent l and factor i: the deviation of $z_l$ from its mean among samples that share the value
    of factor i, at a high quantile, averaged over values and divided by the largest
    deviation of all. A latent's robustness is one less the smallest of these, and the score is their
    mean, weighted by the largest deviation of each latent.

    Reference: Robustly Disentangled Causal Mechanisms, R. Suter et al., 2019, section 4.

    Arguments:
        latents: (n, d).
        factors: (n, k).
        quantile: of the deviations within a value; 1 takes the largest, as the paper does.
        bins: of each continuous factor.
        seed: of the permutation for the chance level.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.array([[a, b] for a in range(4) for b in range(5)], float)
    >>> irs(v, v).value
    1.0
    """
    z, v = checked(latents, factors)

    def matrix(z: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        active = varying(z)
        largest = np.where(active, np.abs(z - z.mean(axis=0)).max(axis=0), 0.0)
        robust = np.zeros((z.shape[1], v.shape[1]))
        for i, classes in enumerate(class_table(v, bins=bins).T):
            order = np.argsort(classes, kind="stable")
            groups = np.split(z[order], np.flatnonzero(np.diff(classes[order])) + 1)
            deviations = [
                np.quantile(np.abs(group - group.mean(axis=0)), quantile, axis=0)
                for group in groups
            ]
            robust[active, i] = 1 - np.mean(deviations, axis=0)[active] / largest[active]
        return robust, largest

    def estimate(z: FloatArray, v: FloatArray) -> float:
        robust, largest = matrix(z, v)
        return float(np.average(robust.max(axis=1), weights=largest)) if largest.any() else 0.0

    return Score(
        "irs",
        estimate(z, v),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={"matrix": matrix(z, v)[0]},
    )
