"""Which images make the batch of a given step: a function of the seed and the step alone.

Because nothing is remembered, a resumed run draws the same batches as one that never stopped.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.contracts.dataset import Dataset, IndexArray
from disentwine.contracts.model import Batch
from disentwine.nn.pictures import to_unit_range

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


def in_mixed_order(indices: IndexArray) -> IndexArray:
    """The same, always in the same order without any: what neighbours of a sorted split share, such as
    a shape, would be in all of a batch, and moments over a batch would not be those of the data.

    >>> sorted(in_mixed_order(np.arange(5)).tolist())
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


class BatchSource:
    """Batches of a data set by index, `uint8` until they are on the device.

    The pixels of a stochastic data set are drawn here, from torch's generator, whose state a
    checkpoint keeps; black and white ones stay as they are.

    Arguments:
        dataset: where images and factors come from.
        device: where batches go.
        dtype: of the numbers in a batch.
    """

    def __init__(
        self, dataset: Dataset, *, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.stochastic = dataset.stochastic
        self.images: Any = dataset.images
        self.in_memory = isinstance(dataset.images, np.ndarray) and dataset.images.flags.writeable
        if self.in_memory:
            self.images = torch.from_numpy(dataset.images)
        self.factors = torch.tensor(dataset.factors, dtype=dtype)

    @classmethod
    def like(cls, model: nn.Module, dataset: Dataset) -> Self:
        """Batches where a model's weights are, in their precision."""
        weight = next(model.parameters())
        return cls(dataset, device=weight.device, dtype=weight.dtype)

    def take(self, indices: IndexArray, *, step: int = 0) -> Batch:
        where = torch.from_numpy(indices)
        pictures: Tensor = (
            self.images.index_select(0, where)
            if self.in_memory
            else torch.from_numpy(self.images[indices])
        )
        x = to_unit_range(pictures.to(self.device, non_blocking=True)).to(self.dtype)
        return Batch(
            x=torch.rand_like(x).lt_(x) if self.stochastic else x,
            u=self.factors.index_select(0, where).to(self.device, non_blocking=True),
            step=step,
        )
