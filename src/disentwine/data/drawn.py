"""Images that are drawn when they are asked for, and act as an array of images until then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from disentwine.contracts.dataset import IndexArray, UInt8Array
from disentwine.errors import UsageError


class DrawnImages:
    """Acts as an (n, height, width, channels) array; every access draws what it asks for.

    Arguments:
        shape: (n, height, width, channels).
        draw: from indices (m) to images (m, height, width, channels).

    >>> images = DrawnImages((100, 2, 2, 1), lambda i: np.full((len(i), 2, 2, 1), i[:, None, None, None]))
    >>> images[7].shape, images[-3:].max(), images[[5, 2]].shape
    ((2, 2, 1), np.int64(99), (2, 2, 2, 1))
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self, shape: tuple[int, int, int, int], draw: Callable[[IndexArray], UInt8Array]
    ) -> None:
        self.shape = shape
        self.draw = draw
        self._numbers = np.arange(shape[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any, /) -> UInt8Array:
        if isinstance(indices, tuple):
            raise UsageError("drawn images are indexed by image only: images[i][row, column]")
        chosen = np.asarray(self._numbers[indices])
        drawn = self.draw(chosen.reshape(-1))
        return drawn.reshape(*chosen.shape, *self.shape[1:])
