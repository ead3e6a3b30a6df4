"""Fixed_noise(seed); drawing under a lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fixed_noise(seed: int) -> Iterator[None]:
    """Draw noise from `seed` inside, and leave the generators outside as they were.

    >>> with fixed_noise(0): a = torch.randn(3)
    >>> with fixed_noise(0): b = torch.randn(3)
    >>> torch.equal(a, b)
    True
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


GENERATOR = threading.Lock()
"""Held while a model is built, which draws its first weights, and while pictures are drawn."""


@contextmanager
def drawing(seed: int | None) -> Iterator[None]:
    """Draw from a seed, or afresh without one, and leave the generator as it was.

    >>> with drawing(3):
    ...     first = torch.rand(2)
    >>> with drawing(3):
    ...     bool((torch.rand(2) == first).all())
    True
    """
    with GENERATOR, torch.random.fork_rng():
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        yield
