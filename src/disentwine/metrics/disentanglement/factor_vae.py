"""The disentanglement metric of the FactorVAE paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.metrics._inputs import ValueIndex, checked, noise_floor, varying


def factor_vae(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    batch: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    seed: int = 0,
    floor: bool = True,
) -> Score:
    r"""Accuracy of predicting the factor that images share from the latent that varies least.

    A vote is $\arg\min_i \frac{\mathrm{Var}(z_i \text{ over the set})}{\mathrm{Var}(z_i)}$; the score
    is the accuracy of the majority-vote classifier from votes to factors.

    Reference: Disentangling by Factorising, H. Kim and A. Mnih, 2018, section 4.

    Arguments:
        latents: (n, d), each image encoded once.
        factors: (n, k); sets are found by their values.
        batch: images of a set.
        train: votes to learn the classifier from.
        test: votes to measure its accuracy on.
        seed: of the sets.
        floor: also measure the chance level (permutation baseline), which doubles the time.

    >>> v = np.array([[a, b] for a in range(8) for b in range(8)], float)
    >>> factor_vae(v, v, train=400, test=200).value
    1.0
    """
    z, v = checked(latents, factors)

    def estimate(z: FloatArray, v: FloatArray) -> float:
        rng = np.random.default_rng([seed, 0])
        index = ValueIndex(v)
        votes, y = _votes(z, index, n=train + test, batch=batch, rng=rng)
        table = np.zeros((z.shape[1], index.k))
        np.add.at(table, (votes[:train], y[:train]), 1)
        majority = table.argmax(axis=1)
        return float((majority[votes[train:]] == y[train:]).mean())

    return Score(
        "factor-vae",
        estimate(z, v),
        n=len(z),
        noise_floor=noise_floor(estimate, z, v, seed=seed) if floor else None,
        details={"batch": batch, "train": train, "test": test},
    )


def _votes(
    z: FloatArray, index: ValueIndex, *, n: int, batch: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    y = rng.integers(index.k, size=n)
    variance, active = z.var(axis=0, ddof=1), varying(z)
    votes = np.zeros(n, dtype=np.int64)
    if not active.any():
        return votes, y
    for factor in range(index.k):
        rows = np.flatnonzero(y == factor)
        for some in np.array_split(rows, max(1, len(rows) // 500)):
            anchor = rng.integers(index.n, size=(len(some), 1))
            sets = index.like(np.repeat(anchor, batch, axis=1), factor, rng)
            within = z[sets].var(axis=1, ddof=1)
            votes[some] = np.where(active, within / np.where(active, variance, 1), np.inf).argmin(1)
    return votes, y
