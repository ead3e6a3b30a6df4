"""Random numbers from a fixed seed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def fixed_noise(seed: int) -> Iterator[None]:
    """Context with seeded random numbers; the state of the generators is restored afterwards.

    >>> with fixed_noise(0): a = torch.randn(3)
    >>> with fixed_noise(0): b = torch.randn(3)
    >>> torch.equal(a, b)
    True
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


GENERATOR = threading.Lock()
"""Guards torch's global generator where several threads build models or sample images."""


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Thread-safe `fixed_noise`; without a seed, a random one is used.

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
