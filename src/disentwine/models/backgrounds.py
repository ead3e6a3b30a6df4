"""Where decoders of images start."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from disentwine.contracts.dataset import Dataset

IMAGES = 500


def median_logits(dataset: Dataset) -> Tensor:
    """The logit of each pixel's median over some training images, (channels, height, width).

    >>> from disentwine.data import Pendulum
    >>> median_logits(Pendulum(size=32)).shape
    torch.Size([3, 32, 32])
    """
    some = np.random.default_rng(0).permutation(dataset.split["train"])[:IMAGES]
    median = torch.from_numpy(np.median(dataset.images[some], axis=0) / 255).permute(2, 0, 1)
    return torch.logit(median.clamp(0.01, 0.99))
