"""Batches in which one factor varies and the others are held, for models that learn from those."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from disentwine.core.capabilities import LearnsActions, VariesOneFactor
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.samplers.pairs import pair_splits
from disentwine.errors import DataError, warn


class Groups(NamedTuple):
    """Images that differ in one factor only: those of `order[start:end]`, group by group.

    Arguments:
        order: indices of images, those of a group beside each other.
        starts: where each group begins.
        ends: where each group ends.
        images: in this group and those before.
    """

    order: IndexArray
    starts: IndexArray
    ends: IndexArray
    images: IndexArray

    @property
    def members(self) -> IndexArray:
        """The images of all groups."""
        places = zip(self.starts, self.ends, strict=True)
        return np.concatenate([self.order[start:end] for start, end in places])


class OneFactorSplit:
    """A training split that chooses its batches itself, see `sampling.batch_indices`.

    A batch is a factor drawn at random and then a group of images that differ in it alone, drawn by
    way of an image, so that all images with company are seen equally often. A group that is larger
    than a batch is drawn from; a smaller one is a smaller batch.

    Arguments:
        factors: (n, k) table; images with NaN in a varied column are left out.
        indices: the training images.
        varied: the columns that take turns; the others may follow them, as effects do.

    >>> grid = np.array([[a, b] for a in range(3) for b in range(2)], float)
    >>> split = OneFactorSplit(grid, np.arange(6), varied=[0, 1])
    >>> batch = grid[split.batch(step=0, batch_size=64, seed=0)]
    >>> sorted(len(np.unique(column)) for column in batch.T) in ([1, 2], [1, 3])
    True
    """

    def __init__(self, factors: FloatArray, indices: IndexArray, *, varied: Sequence[int]) -> None:
        self.indices = indices
        table = factors[indices][:, list(varied)]
        labelled = np.isfinite(table).all(axis=1)
        classes = [np.unique(column, return_inverse=True)[1] for column in table[labelled].T]
        found = [_groups(classes, varying, indices[labelled]) for varying in range(len(varied))]
        self.groups = [groups for groups in found if len(groups.starts)]
        self.never_alone = [i for i, groups in enumerate(found) if not len(groups.starts)]
        if not self.groups:
            raise DataError(
                f"no two of the {len(indices):,} training images differ in one factor only, and this "
                f"model learns from such images: give more of them, labels on a grid, or the graph, so "
                f"that only causes need to be held"
            )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def in_company(self) -> int:
        """How many images are in any group, and so in any batch."""
        return len(np.unique(np.concatenate([groups.members for groups in self.groups])))

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The images of one step, a function of its arguments alone."""
        rng = np.random.default_rng([seed, step, stream])
        order, starts, ends, images = self.groups[rng.integers(len(self.groups))]
        group = np.searchsorted(images, rng.integers(images[-1]), side="right")
        return rng.permutation(order[starts[group] : ends[group]])[:batch_size]


def with_batches_for(model: object, dataset: Dataset) -> Dataset:
    """The data set, its training split such that batches are as the model wants them."""
    split: dict[str, Any] = {}
    if isinstance(model, VariesOneFactor):
        train = OneFactorSplit(dataset.factors, dataset.split["train"], varied=model.varied)
        _tell_of_few(train, [dataset.names[column] for column in model.varied])
        split = {"train": train}
    elif isinstance(model, LearnsActions):
        split = pair_splits(dataset, model)
    else:
        return dataset
    view = copy(dataset)
    view.images = dataset.images  # a data set that draws its images when asked need not do so twice
    view.split = {**dataset.split, **split}
    return view


def _tell_of_few(split: OneFactorSplit, names: Sequence[str]) -> None:
    """Warn where most images are never seen, or a factor never varies by itself."""
    never = ", ".join(names[i] for i in split.never_alone)
    seen = split.in_company
    if never or 2 * seen < len(split):
        warn(
            f"this model learns from images that differ in one factor alone: {seen:,} of the "
            f"{len(split):,} training images do, the others are not seen"
            + (f"; never alone does vary: {never}" if never else "")
        )


def _groups(classes: Sequence[IndexArray], varying: int, indices: IndexArray) -> Groups:
    held = np.zeros(len(indices), np.int64)
    for column, values in enumerate(classes):
        if column != varying:
            held = held * (values.max(initial=0) + 1) + values
            if held.max(initial=0) >= 2**31:  # the next product must not overflow
                held = np.unique(held, return_inverse=True)[1]
    order = np.lexsort((classes[varying], held))
    starts = np.flatnonzero(np.diff(held[order], prepend=-1))
    ends = np.append(starts, len(order))[1:]
    # Within a group values rise, so that they vary where the first is not the last.
    values = classes[varying][order]
    varies = values[starts] < values[ends - 1]
    starts, ends = starts[varies], ends[varies]
    return Groups(indices[order], starts, ends, np.cumsum(ends - starts))
