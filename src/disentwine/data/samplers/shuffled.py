"""Shuffled batches as a function of seed and step."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from disentwine.core.types import IndexArray

VALIDATION_BATCH = 256
"""The most images of which the terms of a loss are measured at once."""


@runtime_checkable
class ChoosesBatches(Protocol):
    """A split that has reasons to put certain images together."""

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The images of one step, a function of its arguments alone."""
        ...


def batch_indices(
    indices: IndexArray | ChoosesBatches,
    *,
    step: int,
    batch_size: int,
    seed: int,
    stream: int = 0,
) -> IndexArray:
    """The images of one step: every epoch is a fresh shuffle, cut into whole batches.

    Batches of different streams are drawn independently of each other. A split that has reasons to
    put certain images together chooses its batches itself.

    >>> first = batch_indices(np.arange(10), step=0, batch_size=5, seed=0)
    >>> second = batch_indices(np.arange(10), step=1, batch_size=5, seed=0)
    >>> sorted([*first.tolist(), *second.tolist()])
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if isinstance(indices, ChoosesBatches):
        return indices.batch(step=step, batch_size=batch_size, seed=seed, stream=stream)
    size = min(batch_size, len(indices))
    epoch, position = divmod(step, len(indices) // size)
    order = _shuffle(len(indices), seed, epoch, stream)[position * size : (position + 1) * size]
    return indices[order]


def shuffled(indices: IndexArray) -> IndexArray:
    """The same, always in the same order without any: what neighbours of a sorted split share, such as
    a shape, would be in all of a batch, and moments over a batch would not be those of the data.

    >>> sorted(shuffled(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """
    return indices[np.random.default_rng(0).permutation(len(indices))]


def validation_batches(indices: IndexArray) -> list[IndexArray]:
    """The same in batches of nearly equal size: moments over a small last one would be its noise.

    >>> [len(batch) for batch in validation_batches(np.arange(257))]
    [129, 128]
    """
    return np.array_split(indices, max(1, -(-len(indices) // VALIDATION_BATCH)))


@lru_cache(maxsize=4)
def _shuffle(n: int, seed: int, epoch: int, stream: int) -> IndexArray:
    entropy = [seed, epoch, stream] if stream else [seed, epoch]
    return np.random.default_rng(entropy).permutation(n).astype(np.int64)
