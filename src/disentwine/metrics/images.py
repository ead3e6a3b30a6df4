"""Errors of reconstructions and counterfactuals, and sharpness of images."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from disentwine.core.score import Score
from disentwine.core.types import UInt8Array
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
    """One error over another, NaN where the other is zero.

    >>> over(0.1, 0.2), over(0.1, 0.0)
    (0.5, nan)
    """
    return error / other if other > 0 else math.nan


def squared_error(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Mean squared difference of pixels in [0, 1]."""
    difference = (a.astype(np.float32) - b.astype(np.float32)) / 255
    return float(np.square(difference).mean(dtype=np.float64))


def sharpness(images: UInt8Array, truth: UInt8Array, *, name: str = "sharpness") -> Score:
    r"""$E(\hat x) / E(x)$ with the gradient energy $E(x) = \overline{(\partial_h x)^2} +
    \overline{(\partial_w x)^2}$, derivatives being differences of neighbouring pixels.

    1 is as sharp as the truth, less is blurred, more is noisy. It does not measure whether edges are
    in the right place: look at the error beside it.

    Arguments:
        images: (n, height, width, channels).
        truth: what they should be, of the same shape.
        name: of the score.

    >>> edge = np.zeros((1, 4, 4, 1), np.uint8)
    >>> edge[:, :, 2:] = 200
    >>> sharpness(edge // 2, edge).value  # half the contrast has a quarter of the energy
    0.25
    """
    if images.shape != truth.shape or images.ndim != 4 or images.size == 0:
        raise UsageError(
            f"images {images.shape} and truth {truth.shape} must be stacks of the same shape "
            f"(n, height, width, channels) with at least one image"
        )
    own, real = _gradient_energy(images), _gradient_energy(truth)
    if real == 0:
        raise UsageError("truth: images of one colour have no edges to compare to")
    details = {
        "about": "gradient energy over that of real images",
        "energy": own,
        "real_energy": real,
    }
    return Score(name, own / real, n=len(images), details=details)


def counterfactual_scores(
    concept: str,
    *,
    predicted: UInt8Array,
    truth: UInt8Array,
    factual: UInt8Array,
    reconstructed: UInt8Array,
) -> tuple[Score, Score]:
    r"""Counterfactual MSE relative to the reconstruction (ratio) and to no intervention (share).

    With $e = \overline{(\hat x_{do} - x_{do})^2}$ of a pixel: the ratio is
    $e \,/\, \overline{(\hat x - x)^2}$, where 1 is perfect, but flatters a model that reconstructs
    badly; the share is $e \,/\, \overline{(x - x_{do})^2}$, where 0 is perfect and above 1 is
    worse than returning the input unchanged. Always look at both. A ratio to an error of 0 is NaN.

    Arguments:
        concept: the one that was set.
        predicted: (n, height, width, channels) the model's counterfactual images.
        truth: the simulator's.
        factual: the images before the intervention.
        reconstructed: the model's reconstructions of them.

    >>> black, white = np.zeros((1, 2, 2, 1), np.uint8), np.full((1, 2, 2, 1), 255, np.uint8)
    >>> ratio, share = counterfactual_scores(
    ...     "light", predicted=white, truth=white, factual=black, reconstructed=white // 5)
    >>> ratio.value, share.value
    (0.0, 0.0)
    """
    stacks = {"predicted": predicted, "truth": truth, "reconstructed": reconstructed}
    for name, stack in stacks.items():
        if stack.shape != factual.shape or stack.size == 0:
            raise UsageError(f"{name} has shape {stack.shape}, factual has {factual.shape}")
    error, own = squared_error(predicted, truth), squared_error(reconstructed, factual)
    nothing = squared_error(factual, truth)
    details = {"error": error, "reconstruction_error": own, "doing_nothing": nothing}
    n = len(factual)
    return (
        Score(f"counterfactual-ratio:{concept}", over(error, own), n, details=details),
        Score(f"counterfactual-share:{concept}", over(error, nothing), n, details=details),
    )


def _gradient_energy(images: NDArray[np.uint8]) -> float:
    x = images.astype(np.float32) / 255
    squares = (np.square(np.diff(x, axis=axis)) for axis in (1, 2))
    return float(sum(s.mean(dtype=np.float64) if s.size else 0.0 for s in squares))
