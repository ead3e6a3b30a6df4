"""Datasets, factors, transitions between images, simulators, and random splits."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import networkx as nx
import numpy as np

from disentwine.core.types import Do, FloatArray, IndexArray, Kind, UInt8Array
from disentwine.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Factor:
    """One column of the factor table.

    Arguments:
        name: of the factor, also in `do={name: value}`.
        kind: continuous, ordinal, categorical or binary.
        unit: of its values, for tables and sliders.
        values: the grid of an ordinal factor, or the names of the categories.
        cyclic: whether the first value follows the last, as for an angle.
    """

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    values: tuple[float | str, ...] = ()
    cyclic: bool = False


@dataclass(frozen=True)
class ActionSpec:
    """The actions of a data set (see `data.transitions`).

    Arguments:
        factors: the factors that actions change, one at a time; all when omitted.
        cyclic: False treats cyclic factors as not cyclic.
        fixed: further factors that are equal in both images of a pair; none when omitted. All other
            factors may differ.
    """

    factors: tuple[str, ...] | None = None
    cyclic: bool = True
    fixed: tuple[str, ...] | None = None


class Images(Protocol):
    """Indexable images, shape (n, height, width, channels): an array or a lazy stand-in for one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Any, /) -> UInt8Array: ...


class Dataset:
    """Images and their factors.

    Subclasses store every constructor argument as an attribute of the same name, so that a recipe
    can be written from the object.

    Attributes:
        images: (n, height, width, channels) `uint8`.
        factors: (n, k) table, one column for each entry of `spec`.
        spec: name, kind and unit of each factor.
        split: indices of the "train", "validation" and "test" images; disjoint.
        graph: the true causal graph over the names of the factors, if known.
        stochastic: whether batches sample binary pixels with grey values as probabilities (dynamic
            binarization).
        labelled_fraction: fraction of the training and validation images that have labels.
        action_spec: the actions on images.
        editable: whether users may edit its files; runs then check that they are unchanged.
        about: one line for `disentwine data list`.
    """

    images: Images
    factors: FloatArray
    spec: tuple[Factor, ...]
    split: Mapping[str, IndexArray]
    graph: nx.DiGraph | None = None
    stochastic: bool = False
    labelled_fraction: float = 1.0
    action_spec: ActionSpec = ActionSpec()
    editable: ClassVar[bool] = False
    about: ClassVar[str] = ""

    def with_labels(self, fraction: float) -> Self:
        """The same images with labels for a fraction of the training and validation images only.

        Test images keep all labels. Smaller fractions are subsets of larger ones. In a recipe:
        `data.labelled_fraction`.

        >>> from disentwine.data import Pendulum
        >>> tenth = Pendulum(size=32).with_labels(0.1)
        >>> bool(np.isnan(tenth.factors[tenth.split["train"]]).all(axis=1).mean().round(1) == 0.9)
        True
        """
        if not 0 < fraction <= 1:
            raise UsageError(f"labelled_fraction must be above 0 and at most 1, got {fraction}")
        labelled = copy(self)
        labelled.labelled_fraction = fraction
        labelled.factors = np.array(self.factors, dtype=np.float64)
        for name in ("train", "validation"):
            indices = self.split[name]
            order = np.random.default_rng(0).permutation(len(indices))
            labelled.factors[indices[order[max(1, round(fraction * len(indices))) :]]] = np.nan
        return labelled

    def with_transitions(
        self,
        *,
        factors: tuple[str, ...] | None = None,
        cyclic: bool = True,
        fixed: tuple[str, ...] | None = None,
    ) -> Self:
        """The same images with other actions. In a recipe: `data.transitions`.

        Arguments:
            factors, cyclic, fixed: as for `transitions`.

        >>> from disentwine.data import Shapes2D, transitions
        >>> transitions(Shapes2D().with_transitions(factors=("x",))).actions
        ('+x', '-x')
        """
        if isinstance(factors, str) or isinstance(fixed, str) or factors == ():
            given = factors if isinstance(factors, str) or factors == () else fixed
            raise UsageError(f"name factors in a list, such as ['{self.names[0]}']; got {given!r}")
        for name in (*(factors or ()), *(fixed or ())):
            column_index(self.names, name)
        both = [name for name in fixed or () if name in (factors or self.names)]
        if both:
            raise UsageError(
                f"fixed: {', '.join(both)} is also in `factors`; name it in `factors` or in `fixed`"
            )
        changed = copy(self)
        changed.action_spec = ActionSpec(factors, cyclic, fixed)
        return changed

    def __len__(self) -> int:
        return len(self.images)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors, in the order of the columns."""
        return tuple(factor.name for factor in self.spec)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        height, width, channels = self.images.shape[1:]
        return height, width, channels

    def column(self, name: str) -> FloatArray:
        """The values of one factor for every image."""
        return self.factors[:, column_index(self.names, name)]

    def is_cyclic(self, column: int) -> bool:
        """Whether actions wrap around from the last value of a factor to the first."""
        return self.action_spec.cyclic and self.spec[column].cyclic

    def __repr__(self) -> str:
        height, width, channels = self.image_shape
        return (
            f"{type(self).__name__}({len(self):,} images of {height}x{width}x{channels}; "
            f"{', '.join(self.names) or 'no factors'})"
        )


@dataclass(frozen=True)
class Transitions:
    """Pairs (x, y, action) of images, stored as indices into a data set.

    Both images of a pair are in the same part of `dataset.split`, so images of test pairs are never
    trained on. A training image may still have the same pixels, see `seen_in_training`.

    Attributes:
        dataset: the images and factors that the pairs index.
        actions: names of the actions, such as "+scale".
        pairs: for "train", "validation" and "test" an (n, 3) table: index of x, index of y, action.
        factor_of_action: (actions,) the column of the factor table that an action changes.
        direction_of_action: (actions,) +1 or -1.
    """

    dataset: Dataset
    actions: tuple[str, ...]
    pairs: Mapping[str, IndexArray]
    factor_of_action: IndexArray
    direction_of_action: IndexArray

    def batch(self, pairs: IndexArray) -> tuple[UInt8Array, UInt8Array, IndexArray]:
        """x (n, h, w, c), y (n, h, w, c) and actions (n,) of some rows of a table of pairs."""
        return self.dataset.images[pairs[:, 0]], self.dataset.images[pairs[:, 1]], pairs[:, 2]

    def __repr__(self) -> str:
        counts = ", ".join(f"{part} {len(table):,}" for part, table in self.pairs.items())
        return f"Transitions({' '.join(self.actions)}; {counts})"


class Simulation(NamedTuple):
    """Rendered images and their factors after the intervention."""

    images: UInt8Array
    factors: FloatArray


@runtime_checkable
class Simulates(Protocol):
    """A data set that renders images from factors, also under interventions."""

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render `factors` (n, k) after the intervention `do`, with its descendants recomputed.

        `noise` holds all further causes of an image; its mean is used when omitted.
        """
        ...


def column_index(names: tuple[str, ...], name: str, *, kind: str = "factor") -> int:
    """Column of a name; an unknown name raises an error with the closest match.

    >>> column_index(("angle", "light"), "light")
    1
    """
    if name not in names:
        raise UsageError(f"there is no {kind} '{name}'. {did_you_mean(name, names)}")
    return names.index(name)


def random_split(n: int, *, test: int, validation: int, seed: int) -> dict[str, IndexArray]:
    """Split `range(n)` at random into disjoint, sorted index arrays.

    Arguments:
        n: number of images.
        test: number of test images.
        validation: number of images for early stopping and the choice of a checkpoint.
        seed: of the permutation; the split is the same on every machine.

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
    """At most `limit` of the indices, evenly spaced.

    >>> evenly_spaced(np.arange(10), 3)
    array([0, 4, 9])
    """
    if len(indices) <= limit:
        return indices
    return indices[np.linspace(0, len(indices) - 1, limit).astype(np.int64)]


def random_subset(indices: IndexArray, limit: int) -> IndexArray:
    """At most `limit` of the indices: a fixed random subset, in the same order.

    Evenly spaced indices would confound the factors of a sorted grid.

    >>> random_subset(np.arange(10), 3)
    array([5, 6, 9])
    """
    if len(indices) <= limit:
        return indices
    chosen = np.random.default_rng(0).choice(len(indices), limit, replace=False)
    return indices[np.sort(chosen)]


def display_order(split: Mapping[str, IndexArray]) -> IndexArray:
    """Test images in a fixed random order for display: t-0, t-1 and so on.

    Validation images where there are no test images, and training images where there are neither.


    >>> display_order({"train": np.arange(4), "validation": np.arange(0), "test": np.arange(4, 7)})
    array([6, 4, 5])
    """
    parts = (split[name] for name in ("test", "validation", "train"))
    held_out = next((indices for indices in parts if len(indices)), np.zeros(0, np.int64))
    return np.random.default_rng(0).permutation(held_out)
