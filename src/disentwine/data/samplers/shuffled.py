"""Shuffled training batches as a function of seed and step; validation batches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from disentwine.core.types import IndexArray

VALIDATION_BATCH = 256
"""Largest number of images in a validation batch."""


class Shuffled:
    """Samples rows of a table; every epoch is a new permutation without its last, incomplete batch.

    Arguments:
        rows: (n,) indices of images, or (n, m) with one row per sample.

    >>> sampler = Shuffled(np.arange(10))
    >>> first, second = (sampler.batch(step=step, batch_size=5, seed=0) for step in range(2))
    >>> sorted([*first.tolist(), *second.tolist()])
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, rows: IndexArray) -> None:
        self.rows = rows

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The rows of one step, a function of its arguments alone."""
        size = min(batch_size, len(self.rows))
        epoch, position = divmod(step, len(self.rows) // size)
        order = _permutation(len(self.rows), seed, epoch, stream)
        return self.rows[order[position * size : (position + 1) * size]]


def shuffled(indices: IndexArray) -> IndexArray:
    """The rows in one fixed random order.

    Neighbours in a sorted split are similar, so the moments of a batch of neighbours would differ from
    those of the data.

    >>> sorted(shuffled(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """
    return indices[np.random.default_rng(0).permutation(len(indices))]


def validation_batches(indices: IndexArray) -> list[IndexArray]:
    """The rows in batches of nearly equal size, as moments of a small last batch would be noisy.

    >>> [len(batch) for batch in validation_batches(np.arange(257))]
    [129, 128]
    """
    return np.array_split(indices, max(1, -(-len(indices) // VALIDATION_BATCH)))


@lru_cache(maxsize=4)
def _permutation(n: int, seed: int, epoch: int, stream: int) -> IndexArray:
    entropy = [seed, epoch, stream] if stream else [seed, epoch]
    return np.random.default_rng(entropy).permutation(n).astype(np.int64)
