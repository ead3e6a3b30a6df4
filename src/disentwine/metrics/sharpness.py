"""How sharp images are, beside real ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.dataset import UInt8Array
from disentwine.contracts.score import Score
from disentwine.errors import UsageError


def sharpness(images: UInt8Array, truth: UInt8Array, *, name: str = "sharpness") -> Score:
    r"""$E(\hat x) / E(x)$ with the gradient energy $E(x) = \overline{(\partial_h x)^2} +
    \overline{(\partial_w x)^2}$, derivatives being differences of neighbouring pixels.

    1 is as sharp as the truth, less is blurred, more is noisy. It says nothing of whether edges are
    where they should be: look at the error beside it.

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
        raise UsageError("truth: images of one colour have no edges to compare with")
    details = {
        "about": "gradient energy over that of real images",
        "energy": own,
        "real_energy": real,
    }
    return Score(name, own / real, n=len(images), details=details)


def _gradient_energy(images: NDArray[np.uint8]) -> float:
    x = images.astype(np.float32) / 255
    squares = (np.square(np.diff(x, axis=axis)) for axis in (1, 2))
    return float(sum(s.mean(dtype=np.float64) if s.size else 0.0 for s in squares))
