"""Index of images by their position on the factor grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from disentwine.core.dataset import Dataset, column_index
from disentwine.core.types import FloatArray, IndexArray
from disentwine.errors import UsageError

MAX_COMBINATIONS = 2**62

SIGNS = {"+": 1, "-": -1}


class FactorGrid:
    """Index of images by their position on the grid of the factors that actions change.

    Arguments:
        dataset: a data set whose actions change no continuous factor.

    Attributes:
        grids: the sorted values of each factor that actions change, by column; constant factors are
            left out.
        index: (n, k) the position of each image on each grid.
        strides: (k,) difference of the keys of images one step of a factor apart.
        fixed_values: (g, h) the combinations of values of fixed factors in the data.
        key: (n,) integer for each combination of positions and fixed values; -1 without labels.

    >>> from disentwine.testing import small_grid
    >>> grid = FactorGrid(small_grid((8, 8, 1)))  # 8 x 8, the second factor changing fastest
    >>> grid.neighbours(np.array([0, 7]), 1, 1)
    array([ 1, -1])
    """

    def __init__(self, dataset: Dataset) -> None:
        self.names = dataset.names
        self.grids = _grids(dataset)
        self.columns = list(self.grids)
        self.cyclic = [dataset.is_cyclic(c) and len(g) > 2 for c, g in self.grids.items()]
        self.sizes = [len(grid) for grid in self.grids.values()]
        labels = dataset.factors[:, self.columns]
        self.index = np.stack(
            [np.searchsorted(g, x) for g, x in zip(self.grids.values(), labels.T, strict=True)],
            axis=1,
        )
        self.fixed = [column_index(dataset.names, name) for name in dataset.action_spec.fixed or ()]
        fixed = dataset.factors[:, self.fixed]
        self.fixed_values, combination = np.unique(fixed, axis=0, return_inverse=True)
        combinations = np.cumprod([1, *self.sizes, len(self.fixed_values)], dtype=float)
        if combinations[-1] > MAX_COMBINATIONS:
            raise UsageError(
                f"{len(self.sizes)} factors have too many combinations; choose fewer `factors`"
            )
        self.strides, self.fixed_stride = np.split(combinations[:-1].astype(np.int64), [-1])
        self.key = self.index @ self.strides + combination.ravel() * self.fixed_stride
        self.key[np.isnan(labels).any(axis=1) | np.isnan(fixed).any(axis=1)] = -1

    @cached_property
    def order(self) -> IndexArray:
        """The images sorted by key."""
        return np.argsort(self.key, kind="stable")

    def after(self, index: IndexArray, i: int, by: IndexArray | int) -> IndexArray:
        """Position on the i-th grid after `by` steps; -1 beyond the end of a non-cyclic grid."""
        after = index + by
        if self.cyclic[i]:
            return after % self.sizes[i]
        return np.where((after >= 0) & (after < self.sizes[i]), after, -1)

    def steps_available(self, images: IndexArray, *, times: int) -> IndexArray:
        """Number of times that each action can be repeated, at most `times`, (n, actions).

        The actions are "+" and "-" of the first factor, of the second, and so on.

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).steps_available(np.array([0, 7]), times=5)
        array([[5, 0, 5, 0],
               [5, 0, 0, 5]])
        """
        index = self.index[images]
        available = np.stack([np.array(self.sizes) - 1 - index, index], axis=2)
        available[:, self.cyclic] = times
        steps: IndexArray = np.minimum(available, times).reshape(len(images), -1)
        return steps

    def neighbours(self, images: IndexArray, factor: int, by: IndexArray | int) -> IndexArray:
        """The image `by` steps of one factor away from each image; -1 where there is none.

        All other factors of the grid and all fixed factors are equal.

        Arguments:
            images: (n,) indices of images.
            factor: its column in the factor table.
            by: number of steps, for all images or for each.
        """
        i = self.columns.index(factor)
        before = self.index[images, i]
        after = self.after(before, i, by)
        key = self.key[images] + (after - before) * self.strides[i]
        position = np.searchsorted(self.key, key, sorter=self.order)
        found = self.order[np.minimum(position, len(self.order) - 1)]
        valid = (after >= 0) & (self.key[images] >= 0)
        return np.where(valid & (self.key[found] == key), found, -1)

    def step(self, row: FloatArray, factor: int, by: int) -> FloatArray | None:
        """A row of the factor table after `by` steps of one factor, even if no image has this row.

        None beyond the end of a grid and for factors that actions do not change.

        >>> from disentwine.testing import small_grid
        >>> grid = FactorGrid(small_grid((8, 8, 1)))
        >>> grid.step(np.array([2.0, 6.0]), 1, 1)
        array([2., 7.])
        >>> grid.step(np.array([2.0, 7.0]), 1, 1) is None
        True
        """
        index = np.flatnonzero(self.grids.get(factor, np.empty(0)) == row[factor])
        if not len(index):
            return None
        index_after = int(self.after(index, self.columns.index(factor), by)[0])
        if index_after < 0:
            return None
        after = row.copy()
        after[factor] = self.grids[factor][index_after]
        return after

    def rows_after(self, row: FloatArray, actions: Sequence[str]) -> list[FloatArray]:
        """Rows of the factor table after each of several actions, up to the first invalid action.

        Arguments:
            row: initial row of the factor table.
            actions: sequence of "+name" and "-name".

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).rows_after(np.array([2.0, 6.0]), ["+colour", "+colour"])
        [array([2., 7.])]
        """
        rows = []
        for action in actions:
            sign, name = action[:1], action[1:]
            if sign not in SIGNS or name not in self.names:
                break
            after = self.step(row, self.names.index(name), SIGNS[sign])
            if after is None:
                break
            row = after
            rows.append(row)
        return rows

    def matching(self, row: FloatArray) -> IndexArray:
        """The images whose grid and fixed factors equal those of a row of the factor table.

        >>> from disentwine.testing import small_grid
        >>> FactorGrid(small_grid((8, 8, 1))).matching(np.array([2.0, 6.0]))
        array([22])
        """
        index = [np.searchsorted(grid, row[column]) for column, grid in self.grids.items()]
        combination = np.flatnonzero((self.fixed_values == row[self.fixed]).all(axis=1))
        if not len(combination):
            return combination
        key = np.dot(index, self.strides) + combination * self.fixed_stride
        first, end = (
            np.searchsorted(self.key, key, side, sorter=self.order) for side in ("left", "right")
        )
        return self.order[first[0] : end[0]]


def _grids(dataset: Dataset) -> dict[int, FloatArray]:
    """The sorted values of the factors that actions change (those named, else all that vary), by column."""
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
                "name ordinal, categorical or binary factors in `factors`"
            )
        grids[column] = grid
    if not grids:
        raise UsageError(f"transitions are steps of a factor, but no factor of {dataset!r} varies")
    return grids
