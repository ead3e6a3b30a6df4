"""Pairs and rollouts of pairs by step."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from disentwine.core.capabilities import LearnsActions
from disentwine.core.dataset import Dataset
from disentwine.core.types import IndexArray
from disentwine.data.samplers.shuffled import batch_indices
from disentwine.data.splits import evenly_spaced
from disentwine.data.transitions import transitions
from disentwine.errors import DataError, UsageError


class Rollouts:
    """Finds, for pairs (x, y, action), others that begin with y.

    Arguments:
        pairs: (m, 3) all there are; each image that one leads to must have one that leads on, as it
            has where every action can be undone.

    >>> there_and_back = np.array([[0, 1, 0], [1, 2, 0], [1, 0, 1], [2, 1, 1]])
    >>> rng = np.random.default_rng(0)
    >>> Rollouts(there_and_back).sample(there_and_back[:1], repeats=3, rng=rng)
    array([[0, 1, 0, 1, 2, 0, 2, 1, 1]])
    """

    def __init__(self, pairs: IndexArray) -> None:
        self.actions = int(pairs[:, 2].max()) + 1
        key = self._key(pairs[:, 0], pairs[:, 2])
        self.order = np.argsort(key, kind="stable")
        self.key, self.pairs = key[self.order], pairs

    def sample(self, pairs: IndexArray, *, repeats: int, rng: np.random.Generator) -> IndexArray:
        """Each pair and those that follow it, (n, 3 * repeats)."""
        row = [pairs]
        while len(row) < repeats:
            row.append(self.next(row[-1], rng))
        return np.concatenate(row, axis=1)

    def next(self, pairs: IndexArray, rng: np.random.Generator) -> IndexArray:
        """Pairs (n, 3) that begin with y: the same action again, or any other where it ends here."""
        y, action = pairs[:, 1], pairs[:, 2]
        first = np.searchsorted(self.key, self._key(y, 0))
        some = rng.integers(first, np.searchsorted(self.key, self._key(y, self.actions)))
        again = np.searchsorted(self.key, self._key(y, action))
        found = self.key[np.minimum(again, len(self.key) - 1)] == self._key(y, action)
        return self.pairs[self.order[np.where(found, again, some)]]

    def _key(self, image: IndexArray, action: IndexArray | int) -> IndexArray:
        return image * self.actions + action


MOST_VALIDATION = 1024
"""Images, or pairs, that a validation looks at."""


class PairSplit:
    """A split of images first, of pairs after `pretraining` steps, and of pairs that follow each other
    from step `repeats_from` on.

    Arguments:
        images: (n,) indices.
        pairs: (m, 3) indices of x and of y, and the action.
        pretraining: steps.
        repeats: pairs in a row.
        repeats_from: the step from which on.

    >>> split = PairSplit(np.arange(4), np.array([[0, 1, 0], [1, 0, 1]]), pretraining=1)
    >>> [split.batch(step=step, batch_size=2, seed=0).shape for step in (0, 1)]
    [(2,), (2, 3)]
    """

    def __init__(
        self,
        images: IndexArray,
        pairs: IndexArray,
        *,
        pretraining: int,
        repeats: int = 1,
        repeats_from: int = 0,
    ) -> None:
        self.images, self.pairs, self.pretraining = images, pairs, pretraining
        self.repeats, self.repeats_from = repeats, repeats_from

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """Images (n,), pairs (n, 3) or rows of pairs (n, 3 * repeats) of one step, a function of its
        arguments alone."""
        early = step < self.pretraining
        chosen = batch_indices(
            self.images if early else self.pairs,
            step=step if early else step - self.pretraining,
            batch_size=batch_size,
            seed=seed,
            stream=stream if early else stream + 2,
        )
        if early or self.repeats == 1 or step < self.repeats_from:
            return chosen
        rng = np.random.default_rng([seed, step, stream])
        return self.rollouts.sample(chosen, repeats=self.repeats, rng=rng)

    @cached_property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.pairs)


class HeldOut:
    """What validations look at: images while they are learnt, then rows of pairs.

    Arguments:
        images: (n,) indices.
        pairs: (m, 3 * repeats) indices of x and of y, and the action; those of the next; and so on.
        pretraining: steps.
    """

    def __init__(self, images: IndexArray, pairs: IndexArray, *, pretraining: int) -> None:
        self.images, self.pairs, self.pretraining = images, pairs, pretraining

    def __len__(self) -> int:
        return len(self.images)

    def learnt(self, *, steps: int) -> IndexArray:
        """What is held against the last of so many updates: images (n,) or pairs."""
        return self.images if learns_images(steps, pretraining=self.pretraining) else self.pairs


def learns_images(steps: int, *, pretraining: int) -> bool:
    """Whether the last of so many updates learnt images, before pairs; at the start, the first.

    >>> [learns_images(steps, pretraining=2) for steps in range(4)]
    [True, True, True, False]
    """
    return max(steps - 1, 0) < pretraining


def pair_splits(dataset: Dataset, model: LearnsActions) -> dict[str, Any]:
    """What a model that learns actions is trained and validated on."""
    steps = transitions(dataset)
    if steps.actions != model.actions:
        raise UsageError(
            f"the model's actions are {' '.join(model.actions)}, and the data set's "
            f"{' '.join(steps.actions)}; build it with {type(model).__name__}.for_data"
        )
    pairs = steps.pairs
    if len(pairs["validation"]) == 0:
        raise DataError(
            "no two validation images differ by one step of one factor: give the data set more images"
        )
    # Rows from the start, also while single actions are learnt: or the scores before and after
    # would be of different losses.
    rows = Rollouts(pairs["validation"]).sample(
        pairs["validation"][:MOST_VALIDATION],
        repeats=1 if model.rollout is None else model.rollout.length,
        rng=np.random.default_rng(0),
    )
    return {
        "train": PairSplit(
            dataset.split["train"],
            pairs["train"],
            pretraining=model.pretrain_steps,
            repeats=1 if model.rollout is None else model.rollout.length,
            repeats_from=0 if model.rollout is None else model.rollout.from_step,
        ),
        "validation": HeldOut(
            evenly_spaced(dataset.split["validation"], MOST_VALIDATION),
            rows,
            pretraining=model.pretrain_steps,
        ),
    }
