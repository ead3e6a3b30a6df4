"""Random splits, subsets and orders of image indices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from disentwine.core.types import IndexArray


def random_split(n: int, *, test: int, validation: int, seed: int) -> dict[str, IndexArray]:
    """Split `range(n)` at random into disjoint, sorted index arrays.

    Arguments:
        n: number of images.
        test: number held out for the final scores.
        validation: number held out for early stopping and the choice of a checkpoint.
        seed: the same seed gives the same split on every machine.

    >>> {name: len(indices) for name, indices in random_split(10, test=3, validation=2, seed=0).items()}
    {'train': 5, 'validation': 2, 'test': 3}
    """
    order = np.random.default_rng(seed).permutation(n).astype(np.int64)
    return {
        "train": np.sort(order[test + validation :]),
        "validation": np.sort(order[test : test + validation]),
        "test": np.sort(order[:test]),
    }


def tenths(n: int, *, seed: int) -> dict[str, IndexArray]:
    """Split `range(n)` at random: 10 % for test, 10 % but at most 10,000 for validation.

    >>> {name: len(indices) for name, indices in tenths(480_000, seed=0).items()}
    {'train': 422000, 'validation': 10000, 'test': 48000}
    """
    return random_split(n, test=n // 10, validation=min(10_000, n // 10), seed=seed)


def evenly_spaced(indices: IndexArray, limit: int) -> IndexArray:
    """At most `limit` of the indices, evenly spaced, as neighbouring images are similar.

    >>> evenly_spaced(np.arange(10), 3)
    array([0, 4, 9])
    """
    if len(indices) <= limit:
        return indices
    return indices[np.linspace(0, len(indices) - 1, limit).astype(np.int64)]


def random_subset(indices: IndexArray, limit: int) -> IndexArray:
    """At most `limit` of the indices: a fixed random subset, in the same order.

    Unlike a stride, it does not confound the factors of a sorted grid.

    >>> random_subset(np.arange(10), 3)
    array([5, 6, 9])
    """
    if len(indices) <= limit:
        return indices
    chosen = np.random.default_rng(0).choice(len(indices), limit, replace=False)
    return indices[np.sort(chosen)]


def display_order(split: Mapping[str, IndexArray]) -> IndexArray:
    """Held-out images in a fixed random order for display: t-0, t-1 and so on.

    >>> display_order({"train": np.arange(4), "validation": np.arange(0), "test": np.arange(4, 7)})
    array([6, 4, 5])
    """
    parts = (split[name] for name in ("test", "validation", "train"))
    held_out = next((indices for indices in parts if len(indices)), np.zeros(0, np.int64))
    return np.random.default_rng(0).permutation(held_out)
