"""Shrinking stacks of images by the area that each new pixel covers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.dataset import UInt8Array
from disentwine.errors import UsageError

AT_ONCE = 2048


def shrink(images: NDArray[Any], size: int, *, white: float = 255.0) -> UInt8Array:
    """Square grey images (n, side, side) as (n, size, size): every new pixel is the mean of its area.

    Arguments:
        images: bytes, or booleans with `white=1`.
        size: of the new images; at most their side.
        white: the brightest value of the given images.

    >>> shrink(np.array([[[0, 255, 0], [0, 255, 0], [0, 255, 0]]], np.uint8), 1).item()
    85
    """
    side = images.shape[-1]
    if images.shape[1:] != (side, side) or not 1 <= size <= side:
        raise UsageError(f"size={size}: images of {images.shape[1:]} can be shrunk to 1..{side}")
    if side % size == 0:
        return _mean_of_blocks(images, side // size, white=white)
    edges = np.linspace(0, side, size + 1)
    pixels = np.arange(side)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = (covered.clip(0) * size / side).astype(np.float32)
    out = np.empty((len(images), size, size), np.uint8)
    for start in range(0, len(images), AT_ONCE):
        block = images[start : start + AT_ONCE].astype(np.float32) * (255 / white)
        out[start : start + AT_ONCE] = np.rint(weights @ block @ weights.T)
    return out


def _mean_of_blocks(images: NDArray[Any], step: int, *, white: float) -> UInt8Array:
    """The same for new pixels that cover whole old ones: sums of bytes, with no matrix product."""
    total = np.zeros((len(images), *(side // step for side in images.shape[1:])), np.uint32)
    for row, column in np.ndindex(step, step):
        total += images[:, row::step, column::step]
    return np.rint(total * (255 / (white * step * step))).astype(np.uint8)
