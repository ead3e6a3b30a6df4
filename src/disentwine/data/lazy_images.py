"""Images rendered on access, bit-packed binary images, and all factor combinations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.errors import UsageError


class LazyImages:
    """Array-like (n, height, width, channels) images that are rendered on each access.

    Arguments:
        shape: (n, height, width, channels).
        render: maps indices (m,) to images (m, height, width, channels).

    >>> images = LazyImages((100, 2, 2, 1), lambda i: np.full((len(i), 2, 2, 1), i[:, None, None, None]))
    >>> images[7].shape, images[-3:].max(), images[[5, 2]].shape
    ((2, 2, 1), np.int64(99), (2, 2, 2, 1))
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self, shape: tuple[int, int, int, int], render: Callable[[IndexArray], UInt8Array]
    ) -> None:
        self.shape = shape
        self.render = render
        self._numbers = np.arange(shape[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any, /) -> UInt8Array:
        if isinstance(indices, tuple):
            raise UsageError("rendered images are indexed by image only: images[i][row, column]")
        chosen = np.asarray(self._numbers[indices])
        rendered = self.render(chosen.reshape(-1))
        return rendered.reshape(*chosen.shape, *self.shape[1:])


class PackedImages:
    """Bit-packed binary images, array-like (n, height, width, 1) with values 0 and 255.

    The 737,280 images of dSprites take 378 MB instead of 3 GB.

    Arguments:
        bits: (n, height * width / 8) from `np.packbits`: rows from the top, the leftmost pixel in
            the highest bit.
        height: rows of an image.
        width: columns of an image; height * width must be a multiple of 8.

    >>> images = PackedImages.pack([np.eye(8)[None]], n=1, height=8, width=8)
    >>> images.shape, images[0].shape, int(images[:1].max())
    ((1, 8, 8, 1), (8, 8, 1), 255)
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, bits: UInt8Array, *, height: int = 64, width: int = 64) -> None:
        if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] * 8 != height * width:
            raise ValueError(
                f"an array of shape {bits.shape} and type {bits.dtype} does not hold packed "
                f"{height}x{width} images; give (n, {height * width // 8}) bytes"
            )
        self.bits = bits
        self.height = height
        self.width = width

    @classmethod
    def pack(
        cls, blocks: Iterable[NDArray[Any]], *, n: int, height: int = 64, width: int = 64
    ) -> PackedImages:
        """Pack `n` images from blocks (m, height, width); nonzero pixels are white."""
        bits = np.empty((n, height * width // 8), np.uint8)
        start = 0
        for block in blocks:
            stop = start + len(block)
            if block.shape[1:] != (height, width) or stop > n:
                raise ValueError(
                    f"images {start} to {stop} have shape {block.shape[1:]}; "
                    f"expected {n} images of {height}x{width}"
                )
            bits[start:stop] = np.packbits(block.astype(bool).reshape(len(block), -1), axis=1)
            start = stop
        if start < n:
            raise ValueError(f"there are {start} images, but {n} rows of factors")
        return cls(bits, height=height, width=width)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(n, height, width, 1)"""
        return len(self.bits), self.height, self.width, 1

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, indices: Any, /) -> UInt8Array:
        if isinstance(indices, tuple):
            raise UsageError("packed images are indexed by image only: images[i][row, column]")
        chosen = self.bits[indices]
        pixels = np.unpackbits(chosen, axis=-1)
        np.negative(pixels, out=pixels)
        return pixels.reshape(*chosen.shape[:-1], self.height, self.width, 1)


def every_combination(*values: Iterable[float]) -> FloatArray:
    """All combinations of the values of k factors, (n, k); the last factor changes fastest.

    >>> every_combination([0, 1], [5, 6]).tolist()
    [[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]]
    """
    axes = [np.fromiter(axis, np.float64) for axis in values]
    table = np.empty((*map(len, axes), len(axes)))
    for i, axis in enumerate(np.ix_(*axes)):
        table[..., i] = axis
    return table.reshape(-1, len(axes))
