"""Finding the image that is some steps of a factor away."""

from __future__ import annotations

import numpy as np

from disentwine.contracts.dataset import Dataset, IndexArray


class Steps:
    """The images of a data set by their place on the grid of its factors.

    Arguments:
        dataset: one whose factors take steps.
        columns: the factors that act; the others are not looked at.

    >>> from disentwine.testing import small_grid
    >>> steps = Steps(small_grid((8, 8, 1)), [0, 1])  # 8 x 8, the second factor changing fastest
    >>> steps.moved(np.array([0, 7]), 1, 1)
    array([ 1, -1])
    """

    def __init__(self, dataset: Dataset, columns: list[int]) -> None:
        self.columns = columns
        self.cyclic = [dataset.goes_round(c) for c in columns]
        grids = [np.unique(column[~np.isnan(column)]) for column in dataset.factors[:, columns].T]
        self.sizes = [len(grid) for grid in grids]
        pairs = zip(grids, dataset.factors[:, columns].T, strict=True)
        self.level = np.stack([np.searchsorted(grid, column) for grid, column in pairs], axis=1)
        self.strides = np.cumprod([1, *self.sizes[:-1]]).astype(np.int64)
        self.key = self.level @ self.strides
        self.key[np.isnan(dataset.factors[:, columns]).any(axis=1)] = -1
        self.order = np.argsort(self.key, kind="stable")

    def moved(self, images: IndexArray, factor: int, by: IndexArray | int) -> IndexArray:
        """The images in which a factor is `by` steps further and all others are the same, or -1.

        Arguments:
            images: (n,) where from.
            factor: its column.
            by: steps, for all or for each.
        """
        i = self.columns.index(factor)
        before = self.level[images, i]
        after = before + by
        if self.cyclic[i] and self.sizes[i] > 2:
            after = after % self.sizes[i]
        key = self.key[images] + (after - before) * self.strides[i]
        place = np.searchsorted(self.key, key, sorter=self.order)
        found = self.order[np.minimum(place, len(self.order) - 1)]
        there = (after >= 0) & (after < self.sizes[i]) & (self.key[images] >= 0)
        return np.where(there & (self.key[found] == key), found, -1)
