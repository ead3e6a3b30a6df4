"""Steps of factors: which image is some steps of one factor away from another."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from disentwine.core.dataset import Dataset, column_index
from disentwine.core.types import FloatArray, IndexArray
from disentwine.errors import UsageError

MOST_COMBINATIONS = 2**62


class FactorGrid:
    """The images of a data set by their place on the grid of the factors that act.

    Arguments:
        dataset: one whose acting factors are not continuous.

    Attributes:
        grids: the sorted values of each factor that acts, by its column; factors that never vary
            do not.
        level: (n, k) the place of each image on each grid.
        strides: (k,) what a step of each adds to the key.
        kept: (g, h) the combinations of values that occur of factors that are held and do not act.
        key: (n,) a number for each combination of levels and of these, -1 without labels.

    >>> from disentwine.testing import small_grid
    >>> steps = FactorGrid(small_grid((8, 8, 1)))  # 8 x 8, the second factor changing fastest
    >>> steps.neighbours(np.array([0, 7]), 1, 1)
    array([ 1, -1])
    """

    def __init__(self, dataset: Dataset) -> None:
        self.grids = _grids(dataset)
        self.columns = list(self.grids)
        self.cyclic = [dataset.is_cyclic(c) and len(g) > 2 for c, g in self.grids.items()]
        self.sizes = [len(grid) for grid in self.grids.values()]
        labels = dataset.factors[:, self.columns]
        self.level = np.stack(
            [np.searchsorted(g, x) for g, x in zip(self.grids.values(), labels.T, strict=True)],
            axis=1,
        )
        self.fixed = [column_index(dataset.names, name) for name in dataset.action_spec.fixed or ()]
        fixed = dataset.factors[:, self.fixed]
        self.kept, kept = np.unique(fixed, axis=0, return_inverse=True)
        combinations = np.cumprod([1, *self.sizes, len(self.kept)], dtype=float)
        if combinations[-1] > MOST_COMBINATIONS:
            raise UsageError(
                f"{len(self.sizes)} factors are too many to hold; choose fewer `factors`"
            )
        self.strides, self.kept_stride = np.split(combinations[:-1].astype(np.int64), [-1])
        self.key = self.level @ self.strides + kept.ravel() * self.kept_stride
        self.key[np.isnan(labels).any(axis=1) | np.isnan(fixed).any(axis=1)] = -1

    @cached_property
    def order(self) -> IndexArray:
        """Which images have the smallest key, the next, and so on."""
        return np.argsort(self.key, kind="stable")

    def after(self, level: IndexArray, i: int, by: IndexArray | int) -> IndexArray:
        """CategoricalMechanism of the i-th factor `by` steps further, -1 beyond the end of a grid that
        has ends."""
        after = level + by
        if self.cyclic[i]:
            return after % self.sizes[i]
        return np.where((after >= 0) & (after < self.sizes[i]), after, -1)

    def steps_available(self, images: IndexArray, *, times: int) -> IndexArray:
        """How often each action, "+" and "-" of each factor in turn, can be done, (n, actions) and at
        most `times`.

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).steps_available(np.array([0, 7]), times=5)
        array([[5, 0, 5, 0],
               [5, 0, 0, 5]])
        """
        level = self.level[images]
        room = np.stack([np.array(self.sizes) - 1 - level, level], axis=2)
        room[:, self.cyclic] = times
        reach: IndexArray = np.minimum(room, times).reshape(len(images), -1)
        return reach

    def neighbours(self, images: IndexArray, factor: int, by: IndexArray | int) -> IndexArray:
        """The images in which a factor is `by` steps further and all others that act, or are held, are the
        same, or -1.

        Arguments:
            images: (n,) where from.
            factor: its column.
            by: steps, for all or for each.
        """
        i = self.columns.index(factor)
        before = self.level[images, i]
        after = self.after(before, i, by)
        key = self.key[images] + (after - before) * self.strides[i]
        place = np.searchsorted(self.key, key, sorter=self.order)
        found = self.order[np.minimum(place, len(self.order) - 1)]
        there = (after >= 0) & (self.key[images] >= 0)
        return np.where(there & (self.key[found] == key), found, -1)

    def step(self, row: FloatArray, factor: int, by: int) -> FloatArray | None:
        """A row of the factor table in which a factor is `by` steps further, whether or not there is
        an image of it; None beyond the end of a grid, and for factors that do not act.

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).step(np.array([2.0, 6.0]), 1, 1)
        array([2., 7.])
        """
        here = np.flatnonzero(self.grids.get(factor, np.empty(0)) == row[factor])
        if not len(here):
            return None
        place = int(self.after(here, self.columns.index(factor), by)[0])
        if place < 0:
            return None
        after = row.copy()
        after[factor] = self.grids[factor][place]
        return after

    def matching(self, row: FloatArray) -> IndexArray:
        """The images whose factors that act, or are held, are those of a row of the factor table.

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).matching(np.array([2.0, 6.0]))
        array([22])
        """
        levels = [np.searchsorted(grid, row[column]) for column, grid in self.grids.items()]
        kept = np.flatnonzero((self.kept == row[self.fixed]).all(axis=1))
        if not len(kept):
            return kept
        key = np.dot(levels, self.strides) + kept * self.kept_stride
        first, end = (
            np.searchsorted(self.key, key, side, sorter=self.order) for side in ("left", "right")
        )
        return self.order[first[0] : end[0]]


def _grids(dataset: Dataset) -> dict[int, FloatArray]:
    """The values of each factor that acts, by its column: those named, or all that vary."""
    grids = {}
    factors = dataset.action_spec.factors
    for name in dataset.names if factors is None else factors:
        column = column_index(dataset.names, name)
        grid = np.unique(dataset.factors[:, column])
        grid = grid[~np.isnan(grid)]
        if len(grid) < 2:
            continue
        if dataset.spec[column].kind == "continuous":
            raise UsageError(
                f"transitions are steps on a grid, but '{name}' of {dataset!r} is continuous; "
                "name factors that have steps in `factors`"
            )
        grids[column] = grid
    if not grids:
        raise UsageError(f"transitions are steps of a factor, but no factor of {dataset!r} varies")
    return grids
