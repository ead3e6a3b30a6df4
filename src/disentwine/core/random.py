"""Random numbers from a fixed seed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fixed_noise(seed: int) -> Iterator[None]:
    """Inside, random numbers come from `seed`; the generators outside are left as they were.

    >>> with fixed_noise(0): a = torch.randn(3)
    >>> with fixed_noise(0): b = torch.randn(3)
    >>> torch.equal(a, b)
    True
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


GENERATOR = threading.Lock()
"""Held while a model is built, which samples its initial weights, and while images are sampled."""


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Inside, random numbers come from a seed, or a fresh one; the generator is left as it was.

    >>> with seeded(3):
    ...     first = torch.rand(2)
    >>> with seeded(3):
    ...     bool((torch.rand(2) == first).all())
    True
    """
    with GENERATOR, torch.random.fork_rng():
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        yield
