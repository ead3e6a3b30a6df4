"""What transitions promise: pairs of images of which an action on one factor made the second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from disentwine.contracts.dataset import Dataset, IndexArray, UInt8Array


@dataclass(frozen=True)
class Transitions:
    """Pairs (x, y, action) over a data set, as indices: no image is copied.

    Both images of a pair lie in the same part of `dataset.split`, so what is learnt on the training
    images and pairs has seen no image of a test pair; but perhaps one that looks the same, see
    `data.seen`.

    Attributes:
        dataset: the images and factors that the pairs point into.
        actions: a name for each action, such as "+scale".
        pairs: for "train", "validation" and "test" an (n, 3) table: index of x, index of y, action.
        factor_of_action: (actions,) the column of the factor table that an action moves.
        direction_of_action: (actions,) +1 or -1.
    """

    dataset: Dataset
    actions: tuple[str, ...]
    pairs: Mapping[str, IndexArray]
    factor_of_action: IndexArray
    direction_of_action: IndexArray

    def batch(self, pairs: IndexArray) -> tuple[UInt8Array, UInt8Array, IndexArray]:
        """x (n, h, w, c), y (n, h, w, c) and actions (n) of some rows of a table of pairs."""
        return self.dataset.images[pairs[:, 0]], self.dataset.images[pairs[:, 1]], pairs[:, 2]

    def __repr__(self) -> str:
        counts = ", ".join(f"{part} {len(table):,}" for part, table in self.pairs.items())
        return f"Transitions({' '.join(self.actions)}; {counts})"
