"""Dataset, Factor, ActionSpec, Simulates, Transitions."""

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
        name: what the user calls it, also in `do={name: value}`.
        kind: how its values compare.
        unit: the unit of its values, for tables and sliders.
        values: the grid of an ordinal factor, or the names of the categories.
        cyclic: whether a step beyond the last value leads to the first, as a full turn does.
    """

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    values: tuple[float | str, ...] = ()
    cyclic: bool = False


@dataclass(frozen=True)
class ActionSpec:
    """What actions there are on images (see `data.transitions`).

    Arguments:
        factors: those that act, and are fixed while another acts; all when omitted.
        cyclic: False ends every grid, also of cyclic factors.
        fixed: further factors that do not act and are equal in both images of a pair; none when
            omitted. All other factors may differ.
    """

    factors: tuple[str, ...] | None = None
    cyclic: bool = True
    fixed: tuple[str, ...] | None = None


class Images(Protocol):
    """An indexable stack of images, shape (n, height, width, channels): an array or what acts as one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Any, /) -> UInt8Array: ...


class Dataset:
    """Images and their factors. Subclasses keep every constructor argument as an attribute of its
    own name, so that a recipe can be written from the object.

    Attributes:
        images: (n, height, width, channels) `uint8`.
        factors: (n, k) table, a column for each entry of `spec`.
        spec: name, kind and unit of each factor.
        split: indices of the "train", "validation" and "test" images; disjoint.
        graph: the true causal graph over the factors' names, where it is known.
        stochastic: whether brightness is the probability of white, which every batch draws anew.
        labelled_fraction: the share of the training and validation images that carry labels.
        action_spec: what actions there are on images.
        editable: whether users may edit its files, so that runs have to check that they did not change.
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

    def with_labels(self, share: float) -> Self:
        """The same images, of which only a share keeps its labels; test images keep them all.

        A smaller share is a part of a larger one. In a recipe: `data.labelled_fraction`.

        >>> from disentwine.data import Pendulum
        >>> some = Pendulum(size=32).with_labels(0.1)
        >>> bool(np.isnan(some.factors[some.split["train"]]).all(axis=1).mean().round(1) == 0.9)
        True
        """
        if not 0 < share <= 1:
            raise UsageError(f"labelled_fraction must be above 0 and at most 1, got {share}")
        partly = copy(self)
        partly.labelled_fraction, partly.factors = share, np.array(self.factors, dtype=np.float64)
        for name in ("train", "validation"):
            indices = self.split[name]
            order = np.random.default_rng(0).permutation(len(indices))
            partly.factors[indices[order[max(1, round(share * len(indices))) :]]] = np.nan
        return partly

    def with_transitions(
        self,
        *,
        factors: tuple[str, ...] | None = None,
        cyclic: bool = True,
        fixed: tuple[str, ...] | None = None,
    ) -> Self:
        """The same images, with other actions between them. In a recipe: `data.transitions`.

        Arguments:
            factors, cyclic, fixed: as for `transitions`.

        >>> from disentwine.data import Shapes2D, transitions
        >>> transitions(Shapes2D().with_transitions(factors=("x",))).actions
        ('+x', '-x')
        """
        if isinstance(factors, str) or isinstance(fixed, str) or factors == ():
            got = factors if isinstance(factors, str) or factors == () else fixed
            raise UsageError(f"name factors in a list, such as ['{self.names[0]}']; got {got!r}")
        for name in (*(factors or ()), *(fixed or ())):
            column_index(self.names, name)
        both = [name for name in fixed or () if name in (factors or self.names)]
        if both:
            raise UsageError(
                f"fixed: {', '.join(both)} would act and be fixed; name in `factors` only what acts"
            )
        acted = copy(self)
        acted.action_spec = ActionSpec(factors, cyclic, fixed)
        return acted

    def __len__(self) -> int:
        return len(self.images)

    @property
    def names(self) -> tuple[str, ...]:
        """The factors' names, in the order of the table's columns."""
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
        """Whether an action leads from a factor's last value to its first."""
        return self.action_spec.cyclic and self.spec[column].cyclic

    def __repr__(self) -> str:
        height, width, channels = self.image_shape
        return (
            f"{type(self).__name__}({len(self):,} images of {height}x{width}x{channels}; "
            f"{', '.join(self.names) or 'no factors'})"
        )


class Simulation(NamedTuple):
    """Rendered images, and the factors after the intervention."""

    images: UInt8Array
    factors: FloatArray


@runtime_checkable
class Simulates(Protocol):
    """A data set that can render any image, also after an intervention."""

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render `factors` (n, k) after the intervention `do`, with its descendants recomputed.

        `noise` is what an image shows beside its factors (its mean when omitted).
        """
        ...


def column_index(names: tuple[str, ...], name: str, *, kind: str = "factor") -> int:
    """Position of a factor, or of whatever kind they are; or an error that names the nearest one.

    >>> column_index(("angle", "light"), "light")
    1
    """
    if name not in names:
        raise UsageError(f"there is no {kind} '{name}'. {did_you_mean(name, names)}")
    return names.index(name)


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
