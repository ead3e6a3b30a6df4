"""Rows of actions: pairs of images that begin where others end."""

from __future__ import annotations

import numpy as np

from disentwine.contracts.dataset import IndexArray


class Following:
    """Finds, for pairs (x, y, action), others that begin with y.

    Arguments:
        pairs: (m, 3) all there are; each image that one leads to must have one that leads on, as it
            has where every action can be undone.

    >>> there_and_back = np.array([[0, 1, 0], [1, 2, 0], [1, 0, 1], [2, 1, 1]])
    >>> rng = np.random.default_rng(0)
    >>> Following(there_and_back).rows(there_and_back[:1], repeats=3, rng=rng)
    array([[0, 1, 0, 1, 2, 0, 2, 1, 1]])
    """

    def __init__(self, pairs: IndexArray) -> None:
        self.actions = int(pairs[:, 2].max()) + 1
        key = self._key(pairs[:, 0], pairs[:, 2])
        self.order = np.argsort(key, kind="stable")
        self.key, self.pairs = key[self.order], pairs

    def rows(self, pairs: IndexArray, *, repeats: int, rng: np.random.Generator) -> IndexArray:
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
