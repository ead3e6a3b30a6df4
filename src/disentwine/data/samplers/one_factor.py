"""Batches in which one factor varies and the others are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from disentwine.core.types import FloatArray, IndexArray
from disentwine.errors import DataError, warn


class Groups(NamedTuple):
    """Groups of images that differ in one factor only; a group is `order[start:end]`.

    Arguments:
        order: indices of images, sorted by group.
        starts: first position of each group in `order`.
        ends: last position of each group, exclusive.
        cumulative: number of images in this group and those before.
    """

    order: IndexArray
    starts: IndexArray
    ends: IndexArray
    cumulative: IndexArray

    @property
    def members(self) -> IndexArray:
        """The images of all groups."""
        bounds = zip(self.starts, self.ends, strict=True)
        return np.concatenate([self.order[start:end] for start, end in bounds])


class OneFactor:
    """Samples groups of images that differ in one factor only.

    For each batch a factor is sampled, then an image among those in groups of this factor; the batch is
    its group. Groups are therefore sampled in proportion to their size. Larger groups than the batch
    size are subsampled; smaller groups make smaller batches.

    Arguments:
        factors: (n, k) table; images with NaN in a varied column are left out.
        indices: the training images.
        varied: the columns; one of them varies in a batch. Columns not named here may vary with it,
            such as effects with their causes.

    >>> grid = np.array([[a, b] for a in range(3) for b in range(2)], float)
    >>> sampler = OneFactor(grid, np.arange(6), varied=[0, 1])
    >>> batch = grid[sampler.batch(step=0, batch_size=64, seed=0)]
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
                f"model learns from such images: give more images, labels on a grid, or the graph, so "
                f"that only causes need to be fixed"
            )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def sampled_images(self) -> int:
        """Number of images in any group, which are those that are ever sampled."""
        return len(np.unique(np.concatenate([groups.members for groups in self.groups])))

    def warn_of_unused_images(self, names: Sequence[str]) -> None:
        """Warn if most images are never sampled, or if a factor never varies alone.

        Arguments:
            names: of the varied factors.
        """
        never = ", ".join(names[i] for i in self.never_alone)
        count = self.sampled_images
        if never or 2 * count < len(self):
            warn(
                f"this model learns from images that differ in one factor alone: {count:,} of the "
                f"{len(self):,} training images do, the others are not used"
                + (f"; factors that never vary alone: {never}" if never else "")
            )

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The images of one step, a function of its arguments alone."""
        rng = np.random.default_rng([seed, step, stream])
        order, starts, ends, cumulative = self.groups[rng.integers(len(self.groups))]
        group = np.searchsorted(cumulative, rng.integers(cumulative[-1]), side="right")
        return rng.permutation(order[starts[group] : ends[group]])[:batch_size]


def _groups(classes: Sequence[IndexArray], varying: int, indices: IndexArray) -> Groups:
    fixed = np.zeros(len(indices), np.int64)
    for column, values in enumerate(classes):
        if column != varying:
            fixed = fixed * (values.max(initial=0) + 1) + values
            if fixed.max(initial=0) >= 2**31:  # the next product must not overflow
                fixed = np.unique(fixed, return_inverse=True)[1]
    order = np.lexsort((classes[varying], fixed))
    starts = np.flatnonzero(np.diff(fixed[order], prepend=-1))
    ends = np.append(starts, len(order))[1:]
    # Values are sorted within a group, so they vary if the first is below the last.
    values = classes[varying][order]
    varies = values[starts] < values[ends - 1]
    starts, ends = starts[varies], ends[varies]
    return Groups(indices[order], starts, ends, np.cumsum(ends - starts))
