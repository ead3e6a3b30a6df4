"""Asking a network without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside; the mode that was before comes back.

    >>> dropout = nn.Dropout(0.5)
    >>> with evaluating(dropout): dropout(torch.ones(3))
    tensor([1., 1., 1.])
    >>> dropout.training
    True
    """
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)
