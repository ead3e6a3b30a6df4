"""Batches of pairs of images, and of rollouts of pairs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from disentwine.core.types import IndexArray
from disentwine.data.samplers.shuffled import Shuffled


class Rollouts:
    """Extends pairs (x, y, action) to rollouts by pairs that begin with y.

    Arguments:
        pairs: (m, 3) all pairs. Every image y must also be the x of a pair, which holds if every action
            has an inverse.

    >>> pairs = np.array([[0, 1, 0], [1, 2, 0], [1, 0, 1], [2, 1, 1]])
    >>> rng = np.random.default_rng(0)
    >>> Rollouts(pairs).sample(pairs[:1], length=3, rng=rng)
    array([[0, 1, 0, 1, 2, 0, 2, 1, 1]])
    """

    def __init__(self, pairs: IndexArray) -> None:
        self.actions = int(pairs[:, 2].max()) + 1
        key = self._key(pairs[:, 0], pairs[:, 2])
        self.order = np.argsort(key, kind="stable")
        self.key, self.pairs = key[self.order], pairs

    def sample(self, pairs: IndexArray, *, length: int, rng: np.random.Generator) -> IndexArray:
        """Rollouts (n, 3 * length): each pair and the pairs that follow it."""
        rollout = [pairs]
        while len(rollout) < length:
            rollout.append(self.next(rollout[-1], rng))
        return np.concatenate(rollout, axis=1)

    def next(self, pairs: IndexArray, rng: np.random.Generator) -> IndexArray:
        """Pairs (n, 3) that begin with y: with the same action if possible, else with a random one."""
        y, action = pairs[:, 1], pairs[:, 2]
        first = np.searchsorted(self.key, self._key(y, 0))
        sampled = rng.integers(first, np.searchsorted(self.key, self._key(y, self.actions)))
        same_action = np.searchsorted(self.key, self._key(y, action))
        found = self.key[np.minimum(same_action, len(self.key) - 1)] == self._key(y, action)
        return self.pairs[self.order[np.where(found, same_action, sampled)]]

    def _key(self, image: IndexArray, action: IndexArray | int) -> IndexArray:
        return image * self.actions + action


class Pairs:
    """Samples pairs of images; every epoch is a new permutation.

    Arguments:
        pairs: (m, 3) indices of x and of y, and the action.
        start: first step at which pairs are sampled.

    >>> sampler = Pairs(np.array([[0, 1, 0], [1, 0, 1]]), start=1)
    >>> sampler.batch(step=1, batch_size=2, seed=0).shape
    (2, 3)
    """

    def __init__(self, pairs: IndexArray, *, start: int = 0) -> None:
        self.pairs, self.start = pairs, start
        self.shuffled = Shuffled(pairs)

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The pairs (n, 3) of one step, a function of its arguments alone."""
        return self.shuffled.batch(
            step=step - self.start, batch_size=batch_size, seed=seed, stream=stream + 2
        )


class RolloutPairs:
    """Samples rollouts: sequences of pairs; each begins with the last image of the one before.

    Arguments:
        pairs: samples the first pair of each rollout.
        length: number of pairs in a rollout.

    >>> pairs = Pairs(np.array([[0, 1, 0], [1, 0, 1]]))
    >>> RolloutPairs(pairs, length=2).batch(step=0, batch_size=2, seed=0).shape
    (2, 6)
    """

    def __init__(self, pairs: Pairs, *, length: int) -> None:
        self.pairs, self.length = pairs, length

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The rollouts (n, 3 * length) of one step, a function of its arguments alone."""
        first = self.pairs.batch(step=step, batch_size=batch_size, seed=seed, stream=stream)
        rng = np.random.default_rng([seed, step, stream])
        return self.rollouts.sample(first, length=self.length, rng=rng)

    @cached_property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.pairs.pairs)
