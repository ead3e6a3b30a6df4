"""Concepts: names, kinds, training ranges, labels and counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.core.interventions import (
    Counterfactual,
    Intervention,
    OutOfRange,
    Position,
    category_names,
    range_position,
)
from disentwine.core.types import FloatArray, Kind
from disentwine.errors import DataError, UsageError

if TYPE_CHECKING:
    from disentwine.core.capabilities import Intervenes

MAX_OFFSET = 1e5
"""Largest mean of labels in standard deviations, as float32 has seven digits."""

MAX_DISCRETE_VALUES = 8
"""Largest number of values of an ordinal effect with a categorical mechanism."""

MIN_ROWS = 30
"""Fewest completely labelled images that a graph is learnt from."""


@dataclass(frozen=True)
class Concept:
    """A labelled variable of a causal model.

    Arguments:
        name: of the label.
        kind: continuous, ordinal, categorical or binary.
        unit: unit of its values.
        mean: of the training labels.
        std: their standard deviation.
        values: the names of its categories, or its smallest and largest training label; empty for
            runs of early versions.

    >>> light = Concept("light_angle", unit="degrees", mean=92.7, std=22.6, values=(54.0, 132.3))
    >>> [light.position(angle) for angle in (60, 150, 2000)]
    ['seen', 'beyond', 'absurd']
    """

    name: str
    kind: Kind = "continuous"
    unit: str = ""
    mean: float = 0.0
    std: float = 1.0
    values: tuple[float | str, ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of its categories; empty for numbers."""
        return category_names(self.values)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest training label or category index; mean ± 2 standard deviations where
        no values are known."""
        if self.categories:
            return 0.0, len(self.categories) - 1.0
        if self.values:
            return float(self.values[0]), float(self.values[-1])
        return self.mean - 2 * self.std, self.mean + 2 * self.std

    def position(self, value: float) -> Position:
        """Position of a value relative to the training range: "seen", "beyond" or "absurd"."""
        return range_position(value, *self.range)

    def format_value(self, value: float) -> str:
        """The name of a category, or the number.

        >>> colour = Concept("colour", "categorical", values=("red", "blue"))
        >>> colour.format_value(1.0), colour.format_value(0.5)
        ('blue', '0.5')
        """
        names = {float(i): name for i, name in enumerate(self.categories)}
        return names.get(round(float(value), 4), f"{value:.4g}")


@dataclass(frozen=True)
class ConceptSpec:
    """The concepts of a causal model, in the order of the label columns.

    Arguments:
        concepts: one per column of the labels.

    >>> from disentwine.data import Pendulum
    >>> ConceptSpec.from_dataset(Pendulum(size=32)).concepts[1].range
    (54.0, 132.3)
    """

    concepts: tuple[Concept, ...]

    @classmethod
    def from_dataset(cls, dataset: Dataset, *, needed_by: str = "the model") -> ConceptSpec:
        """The concepts of a data set's factors, from its training labels.

        Arguments:
            dataset: some labels may be missing.
            needed_by: name of the model, for errors.
        """
        labels = dataset.factors[dataset.split["train"]]
        if not np.isfinite(labels).any():
            raise DataError(f"{needed_by} learns concepts from labels: give the data set some")
        for name, column in zip(dataset.names, labels.T, strict=True):
            if len(np.unique(column[np.isfinite(column)])) < 2:
                raise DataError(
                    f"{needed_by}: '{name}' has fewer than two different values among the training "
                    f"labels; label more images, or leave it out"
                )
            centre, spread = np.nanmean(column), np.nanstd(column)
            if abs(centre) > MAX_OFFSET * spread:
                raise DataError(
                    f"{needed_by}: '{name}' varies by {spread:.3g} around {centre:.6g}, which single "
                    f"precision cannot resolve; subtract {centre:.6g} from it"
                )
        statistics = (np.nanmean, np.nanstd, np.nanmin, np.nanmax)
        columns = zip(*(f(labels, axis=0).tolist() for f in statistics), strict=True)
        return cls(
            tuple(
                Concept(
                    factor.name,
                    factor.kind,
                    factor.unit,
                    mean,
                    std,
                    category_names(factor.values) or (low, high),
                )
                for factor, (mean, std, low, high) in zip(dataset.spec, columns, strict=True)
            )
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the concepts."""
        return tuple(concept.name for concept in self.concepts)

    def outside_range(self, numbers: Mapping[int, FloatArray]) -> tuple[OutOfRange, ...]:
        """The values outside the training range: the furthest one of each concept that is set.

        Arguments:
            numbers: (n,) values by the index of each concept that is set.

        >>> spec = ConceptSpec((Concept("height", values=(2.0, 8.0)),))
        >>> print(*spec.outside_range({0: np.array([5.0, 9.0, 20.0])}))
        height=20 (2 to 8)
        """
        found = []
        for i, new in numbers.items():
            concept, (low, high) = self.concepts[i], self.concepts[i].range
            if concept.categories or not len(new):
                continue
            value = float(new[np.maximum(low - new, new - high).argmax()])
            if (position := concept.position(value)) != "seen":
                found.append(OutOfRange(concept.name, value, low, high, position))
        return tuple(found)


def concept_spec_of(model: Intervenes) -> ConceptSpec:
    """The concepts of a model; names only if the model has no `concept_spec`."""
    found: ConceptSpec | None = getattr(model, "concept_spec", None)
    return found or ConceptSpec(tuple(map(Concept, model.concept_names)))


def counterfactual_of(model: Intervenes, x: Any, intervention: Intervention) -> Counterfactual:
    """The counterfactual of a model; by `do` and `concepts` if it has no method `counterfactual`.

    Arguments:
        model: a model with the capability "intervenes".
        x: images, in a format that the model accepts.
        intervention: on its concepts.
    """
    if hasattr(model, "counterfactual"):
        found: Counterfactual = model.counterfactual(x, intervention)
        return found
    before = np.asarray(model.concepts(x), dtype=np.float64)
    numbers = intervention.resolve(len(np.atleast_2d(before)), lambda: before)
    values = {
        model.concept_names[i]: new if before.ndim == 2 else new[0] for i, new in numbers.items()
    }
    images = model.do(x, values)
    return Counterfactual(
        images,
        before,
        np.asarray(model.concepts(images), dtype=np.float64),
        affected=model.graph.affected_by(intervention.names),
        beyond=concept_spec_of(model).outside_range(numbers),
    )


def complete_labels(dataset: Dataset) -> FloatArray:
    """The training labels (n, k) of images with all labels."""
    labels = dataset.factors[dataset.split["train"]]
    return labels[np.isfinite(labels).all(axis=1)]


def discrete_values(dataset: Dataset, graph: Graph) -> tuple[tuple[float, ...], ...]:
    """The values of each effect that is categorical or has few values; empty for other concepts.

    Arguments:
        dataset: its training labels are used.
        graph: causal graph of the concepts.
    """
    values = [tuple(np.unique(column).tolist()) for column in complete_labels(dataset).T]
    return tuple(
        found
        if graph.parents(factor.name)
        and (len(found) <= MAX_DISCRETE_VALUES or factor.kind == "categorical")
        else ()
        for factor, found in zip(dataset.spec, values, strict=True)
    )


def enough_labels(dataset: Dataset, *, to_learn: str, otherwise: str = "") -> FloatArray:
    """`complete_labels`, or an error if there are too few.

    Arguments:
        dataset: its training labels are used.
        to_learn: what the labels are needed for, for the error.
        otherwise: an alternative to labelling more images, for the error.
    """
    complete, rows = complete_labels(dataset), len(dataset.split["train"])
    if len(complete) < MIN_ROWS:
        raise DataError(
            f"labels: {len(complete)} of {rows} training images have all labels, and at least "
            f"{MIN_ROWS} are needed to learn {to_learn}; label more of them completely{otherwise}"
        )
    return checked_labels(complete, dataset.names)


def checked_labels(labels: ArrayLike, names: Sequence[str]) -> FloatArray:
    """The rows (n, k) without missing labels; invalid labels raise an error.

    >>> checked_labels([[1.0, float("nan")]] + [[i, -i] for i in range(40)], ("a", "b")).shape
    (40, 2)
    """
    try:
        table = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"labels must be a table of numbers: {error}") from error
    if table.ndim != 2:
        raise UsageError(f"labels must be a table (n, k); got shape {table.shape}")
    if table.shape[1] != len(names):
        raise UsageError(f"labels has {table.shape[1]} columns and names has {len(names)}")
    if not len(names):
        raise UsageError("labels has no columns; a graph needs at least one")
    for name, column in zip(names, table.T, strict=True):
        if np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            raise DataError(
                f"labels: '{name}' is infinite in row {row}; correct it or leave it NaN"
            )
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < MIN_ROWS:
        raise DataError(
            f"labels: {len(complete)} of {len(table)} rows have all labels; "
            f"at least {MIN_ROWS} are needed"
        )
    for name, column in zip(names, complete.T, strict=True):
        if np.ptp(column) <= 1e-12 * np.abs(column).max():
            raise DataError(f"labels: '{name}' has one value only; leave it out")
    return complete
