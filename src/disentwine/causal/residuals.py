"""What of a variable its causes do not explain: leave-one-out residuals of a kernel ridge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.core.types import FloatArray

LANDMARKS = 120
RIDGES = tuple(10.0**power for power in range(-8, 0))
SPAN = 1e-9
"""Directions of features whose variance is a smaller share than this of the largest are dropped."""


def leave_one_out_residuals(
    causes: FloatArray, effects: FloatArray, *, rng: np.random.Generator
) -> FloatArray:
    r"""Residuals of each effect, every row predicted from all the other rows.

    A ridge regression on $\phi(x)$, the Nystroem features of a Gaussian kernel beside $x$ itself.
    With $Z$ the features' orthonormal directions, $e$ their variances and $s = e / (e + n\rho)$,
    the residual without the row itself is $(y - \hat y)_t / (1 - h_t)$, where
    $h_t = 1/n + \sum_j Z_{tj}^2 s_j$; no fit is repeated. For each effect the ridge $\rho$ is the
    one of the smallest leave-one-out error.

    Reference: Using the Nystroem method to speed up kernel machines, C. Williams and M. Seeger,
    2001; the leave-one-out form is that of PRESS, D. Allen, 1974.

    Arguments:
        causes: (n, d) of unit variance.
        effects: (n, m) of zero mean.
        rng: draws the landmarks.

    Returns:
        (n, m) residuals.

    >>> x = np.linspace(-1.5, 1.5, 50)[:, None]
    >>> u = leave_one_out_residuals(x, np.sin(3 * x), rng=np.random.default_rng(0))
    >>> bool(u.std() < 0.01)
    True
    """
    n = len(causes)
    z, e = _orthonormal(_features(causes, rng))
    projected, leverages = z.T @ effects, np.square(z)
    best, smallest = effects, np.full(effects.shape[1], np.inf)
    for ridge in RIDGES:
        shrink = e / (e + n * ridge)
        left_over = effects - z @ (shrink[:, None] * projected)
        residual = left_over / np.maximum(1 - 1 / n - leverages @ shrink, 1e-6)[:, None]
        error = np.square(residual).mean(axis=0)
        best = np.where(error < smallest, residual, best)
        smallest = np.minimum(error, smallest)
    return best


def randomised_residual(
    y: NDArray[np.bool_], probability: FloatArray, *, rng: np.random.Generator
) -> FloatArray:
    r"""The quantile residual of a variable of two values, uniform and independent of the causes when
    $p = P(y = 1 | causes)$ is right: drawn from $[0, 1 - p]$ where y is 0 and $[1 - p, 1]$ where it
    is 1.

    The difference $y - p$ would never be independent of the causes, whatever the truth.

    Reference: Randomized quantile residuals, P. Dunn and G. Smyth, 1996.

    Arguments:
        y: (n,) the values.
        probability: (n,) of y being True.
        rng: draws within the intervals.

    >>> y = np.array([False, True])
    >>> randomised_residual(y, np.array([0.5, 0.5]), rng=np.random.default_rng(0)).round(2)
    array([0.32, 0.63])
    """
    p = np.clip(probability, 1e-3, 1 - 1e-3)
    drawn = rng.random(len(y))
    return np.where(y, 1 - p + drawn * p, drawn * (1 - p))


def _features(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    landmarks = x[rng.choice(len(x), min(LANDMARKS, len(x)), replace=False)]
    variances, directions = np.linalg.eigh(_gaussian_kernel(landmarks, landmarks))
    kept = variances > 1e-8 * variances[-1]
    whitened = directions[:, kept] / np.sqrt(variances[kept])
    features = np.hstack([_gaussian_kernel(x, landmarks) @ whitened, x])
    centred: FloatArray = features - features.mean(axis=0)
    return centred


def _gaussian_kernel(a: FloatArray, b: FloatArray) -> FloatArray:
    """exp(-|a - b|^2 / 2d), the width of standardised inputs in d dimensions."""
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    kernel: FloatArray = np.exp(np.minimum(-squares / (2 * a.shape[1]), 0))
    return kernel


def _orthonormal(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    variances, directions = np.linalg.eigh(features.T @ features)
    kept = variances > SPAN * variances[-1]
    return features @ (directions[:, kept] / np.sqrt(variances[kept])), variances[kept]
