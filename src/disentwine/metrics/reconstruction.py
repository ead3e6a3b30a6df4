"""How far reconstructions are from their originals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.score import Score
from disentwine.errors import UsageError


def reconstruction_error(originals: NDArray[np.uint8], reconstructions: NDArray[np.uint8]) -> Score:
    r"""$\frac{1}{nd} \sum_{i=1}^n \lVert x_i - \hat x_i \rVert^2$: mean squared error of a pixel.

    Values are on the scale from 0 to 1, so that black for white costs 1.

    Arguments:
        originals: (n, height, width, channels).
        reconstructions: of the same shape.

    >>> white = np.full((2, 4, 4, 1), 255, np.uint8)
    >>> reconstruction_error(white, white // 2).value  # (128/255)^2
    0.2519...
    """
    if originals.shape != reconstructions.shape or originals.size == 0:
        raise UsageError(
            f"originals {originals.shape} and reconstructions {reconstructions.shape} must be "
            f"stacks of the same shape with at least one image"
        )
    if originals.dtype != np.uint8 or reconstructions.dtype != np.uint8:
        raise UsageError(
            f"originals are {originals.dtype} and reconstructions {reconstructions.dtype}; give both as "
            f"uint8, from 0 to 255"
        )
    return Score(
        "reconstruction-error",
        squared_error(originals, reconstructions),
        n=len(originals),
        details={"about": "mean squared error of a pixel on the scale from 0 to 1"},
    )


def over(error: float, other: float) -> float:
    """One error over another, which is no number where there is nothing to divide by.

    >>> over(0.1, 0.2), over(0.1, 0.0)
    (0.5, nan)
    """
    return error / other if other > 0 else math.nan


def squared_error(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Mean squared difference of pixels in [0, 1]."""
    difference = (a.astype(np.float32) - b.astype(np.float32)) / 255
    return float(np.square(difference).mean(dtype=np.float64))
