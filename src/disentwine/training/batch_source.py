"""Batches by index, uint8 until on the device."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch
from disentwine.core.types import IndexArray
from disentwine.nn.images import to_unit_range


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
