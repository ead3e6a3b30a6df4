"""The promises of a metric of codes and factors, each a check that raises when it is broken."""

from collections.abc import Callable
from typing import Any

import numpy as np

from disentwine.core.score import Score

Function = Callable[..., Score | tuple[Score, ...]]

SIZES = (3, 4, 5)
"""Values of three independent factors; every combination occurs equally often."""

TINY = 1e-7
"""Of a code in another unit: nothing of it is lost."""

SAMPLING = ("z-diff", "factor-vae", "dci", "explicitness", "info-mec")

LEAST_PERFECT = {
    # A factor of c values has a gap of at most 1 - 1/c in its balanced accuracy: none is categorical here.
    "sap": 0.999,
    "z-diff": 0.999,
    "factor-vae": 0.999,
    "mig": 0.999,
    "dci": 0.99,
    "modularity": 0.999,
    "explicitness": 0.99,
    # The nearest-neighbour estimate of no information is not exactly 0.
    "info-mec": 0.95,
    "irs": 0.999,
    "mic": 0.999,
    # Few-valued factors leave grids with more columns than values below 1; see test_mine for TIC itself.
    "tic": 0.6,
}


def grid(repeats: int) -> np.ndarray:
    """A full grid of factors, each combination `repeats` times."""
    axes = np.meshgrid(*(np.arange(float(size)) for size in SIZES), indexing="ij")
    return np.repeat(np.stack([axis.ravel() for axis in axes], axis=1), repeats, axis=0)


def scores(
    function: Function, codes: np.ndarray, factors: np.ndarray, **options: Any
) -> list[Score]:
    answer = function(codes, factors, **options)
    return list(answer) if isinstance(answer, tuple) else [answer]


def noisy_codes() -> tuple[np.ndarray, np.ndarray]:
    """Codes of middling quality, so that a change of the score has room in both directions."""
    rng = np.random.default_rng(3)
    v = grid(6)
    mixed = v @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.4], [0.2, 0.0, 1.0]])
    return np.hstack([mixed + 0.4 * rng.normal(size=v.shape), rng.normal(size=(len(v), 1))]), v


def check_sample_order(function: Function) -> None:
    z, v = noisy_codes()
    order = np.random.default_rng(4).permutation(len(z))
    for a, b in zip(scores(function, z, v), scores(function, z[order], v[order]), strict=True):
        assert a.value == b.value, f"{a.name} depends on the order of samples"
        assert a.noise_floor == b.noise_floor


def check_perfect(function: Function) -> None:
    v = grid(8)
    for score in scores(function, v, v):
        least = LEAST_PERFECT[score.name]
        assert score.value >= least, f"{score.name} of a perfect code is {score.value:.3f}"


def check_independent(function: Function) -> None:
    """On codes that know nothing, value and floor are draws of one distribution: over several draws
    their means agree within four standard errors (and rounding)."""
    v = grid(8)
    values, floors = [], []
    for seed in range(10):
        z = np.random.default_rng(seed).normal(size=(len(v), 3))
        answers = scores(function, z, v, seed=seed)
        values.append([score.value for score in answers])
        floors.append([score.noise_floor for score in answers])
    a, b = np.array(values), np.array(floors, dtype=float)
    error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / len(a))
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 4 * error + 1e-9).all(), (a, b)


def check_range(function: Function) -> None:
    z, v = noisy_codes()
    for score in scores(function, z, v):
        assert -0.1 <= score.value <= 1
        assert score.n == len(v)


def change(codes: np.ndarray, invariance: str) -> np.ndarray:
    return {
        "latent order": lambda z: z[:, ::-1],
        "latent sign": lambda z: z * np.array([-1, 1, -1, 1]),
        "common scale": lambda z: z * TINY,
        "latent scale": lambda z: z * np.array([0.25, 8.0, TINY, 1 / TINY]),
        "latent shift": lambda z: z + np.array([0.0, 16.0, -4.0, 1.0]),
    }[invariance](codes)


def check_invariance(function: Function, invariance: str) -> None:
    z, v = noisy_codes()
    before, after = scores(function, z, v), scores(function, change(z, invariance), v)
    for a, b in zip(before, after, strict=True):
        values, tolerance = (a.value, b.value), 5e-3
        if a.name in SAMPLING:
            # Samples are drawn by a hash of the codes' content, which differs: hence means of several.
            values = (
                mean_over_seeds(function, z, v),
                mean_over_seeds(function, change(z, invariance), v),
            )
            tolerance = 0.02
        assert abs(values[0] - values[1]) <= tolerance, f"{a.name}: {invariance}, {values}"


def mean_over_seeds(function: Function, codes: np.ndarray, factors: np.ndarray) -> float:
    each = [scores(function, codes, factors, seed=s, floor=False)[0].value for s in range(4)]
    return float(np.mean(each))
