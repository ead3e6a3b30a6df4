"""Interventions on named columns, the range rule, and counterfactual answers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.types import FloatArray
from disentwine.errors import UsageError, did_you_mean

Position = Literal["seen", "beyond", "absurd"]

MARGIN = 0.1
"""Fraction of the training range by which values may exceed it and still count as seen."""

MAX_DISTANCE = 10
"""Distance from the training range, in multiples of its width, beyond which values are absurd."""

SIGNS = {"": 1, "+": 1, "-": -1}


class Column(Protocol):
    """A concept of a model or a factor of a simulator."""

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> tuple[float | str, ...]: ...


def range_position(value: float, low: float, high: float) -> Position:
    """Position of a value relative to a training range (docs/decisions/0019-one-range-rule.md).

    >>> [range_position(value, 0.0, 10.0) for value in (10.9, 11.1, 111.0)]
    ['seen', 'beyond', 'absurd']
    """
    distance, width = max(low - value, value - high), max(high - low, 1e-6)
    if distance > MAX_DISTANCE * width:
        return "absurd"
    return "beyond" if distance > MARGIN * width else "seen"


def category_names(values: Sequence[float | str]) -> tuple[str, ...]:
    """The category names in `values`; empty for numbers.

    >>> category_names(("red", "blue")), category_names((0.5, 1.0))
    (('red', 'blue'), ())
    """
    return tuple(value for value in values if isinstance(value, str))


class OutOfRange(NamedTuple):
    """A value outside the training range of its concept."""

    name: str
    value: float
    low: float
    high: float
    position: Position

    def __str__(self) -> str:
        return f"{self.name}={self.value:g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Counterfactual:
    """Counterfactual images, and their concepts before and after the intervention.

    Arguments:
        images: in the format of the original images.
        before: (n, k) the concepts inferred from each image, in the labels' units; (k,) for one image.
        after: the concepts in each counterfactual.
        affected: names of the descendants of the concepts that are set, causes first.
        beyond: values outside the training range, at most one per concept that is set.
    """

    images: Any
    before: FloatArray
    after: FloatArray
    affected: tuple[str, ...]
    beyond: tuple[OutOfRange, ...]


@dataclass(frozen=True, eq=False)
class Intervention:
    """An intervention do(...): values of some concepts or factors.

    Arguments:
        columns: all concepts of a model, or all factors of a simulator.
        values: by column index, a number, an array with one number per image, or a function of the
            old values of all images.

    >>> from disentwine.core.dataset import Factor
    >>> columns = Factor("colour", "categorical", values=("red", "blue")), Factor("size")
    >>> Intervention.parse({"colour": "blue"}, columns).resolve(2, lambda: [[0, 3], [0, 4]])
    {0: array([1., 1.])}
    >>> Intervention.parse(["colour=blue", "size+=2"], columns).resolve(2, lambda: [[0, 3], [0, 4]])
    {0: array([1., 1.]), 1: array([5., 6.])}
    """

    columns: Sequence[Column]
    values: Mapping[int, Any]

    @classmethod
    def parse(
        cls,
        do: Mapping[str, Any] | Sequence[str],
        columns: Sequence[Column],
        *,
        kind: str = "concept",
    ) -> Intervention:
        """Check names and values, and replace names of categories by their indices.

        Arguments:
            do: values by name, or words such as "light_angle=60", "light_angle+=10" and "colour=red".
                Values are numbers, names of categories, arrays with one value per image, or functions
                of the old values of all images.
            columns: what can be set.
            kind: what a column is called in errors.
        """
        names = [column.name for column in columns]
        values: dict[int, Any] = {}
        for name, value in do.items() if isinstance(do, Mapping) else _words(do, columns, kind):
            if name not in names:
                raise UsageError(f"there is no {kind} '{name}'. {did_you_mean(name, names)}")
            column = columns[names.index(name)]
            if not callable(value):
                array = _as_numbers(column, value)
                value = array if array.ndim else float(array)
            values[names.index(name)] = value
        return cls(columns, values)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are set."""
        return tuple(self.columns[i].name for i in self.values)

    def resolve(
        self, n: int, read_old: Callable[[], ArrayLike], *, between_categories: bool = False
    ) -> dict[int, FloatArray]:
        """Values (n,), one per image, for each column that is set.

        Arguments:
            n: number of images.
            read_old: returns the old values (n, k); called at most once, and only if they are needed.
            between_categories: whether numbers between category indices are valid, as in latents.
                Otherwise such a number is valid only where it equals the old value.
        """

        @cache
        def old() -> FloatArray:
            return np.atleast_2d(np.asarray(read_old(), dtype=np.float64))

        numbers = {}
        for i, value in self.values.items():
            column = self.columns[i]
            new = _as_numbers(column, value(old()[:, i].copy())) if callable(value) else value
            if np.shape(new) not in ((), (n,)):
                raise UsageError(f"do: '{column.name}' needs one value, or one per image ({n})")
            numbers[i] = np.array(np.broadcast_to(new, n), dtype=np.float64)
            categories = category_names(column.values)
            if categories and not between_categories:
                invalid = ~np.isin(numbers[i], np.arange(len(categories)))
                if invalid.any() and (invalid := invalid & (numbers[i] != old()[:, i])).any():
                    raise _not_a_category(column, f"{numbers[i][invalid][0]:g}")
        return numbers


def _as_numbers(column: Column, value: Any) -> NDArray[np.float64]:
    """One number, or one per image, from numbers or names of categories."""
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # a list of lists of several lengths
        raise UsageError(f"do: '{column.name}' needs a number, got {value!r}") from None
    categories = category_names(column.values)
    if categories and array.dtype.kind == "U":
        for word in array.flat:
            if word not in categories:
                raise _not_a_category(column, repr(str(word)))
        array = np.vectorize(categories.index, otypes=[float])(array)
    if not np.can_cast(array.dtype, np.float64):
        raise UsageError(f"do: '{column.name}' needs a number, got {value!r}")
    if not np.isfinite(array).all():
        raise UsageError(f"do: '{column.name}' must be a finite number, got {value}")
    return array.astype(np.float64)


def _not_a_category(column: Column, got: str) -> UsageError:
    categories = category_names(column.values)
    return UsageError(
        f"do: '{column.name}' is one of {', '.join(categories)}, "
        f"or its number from 0 to {len(categories) - 1}; got {got}"
    )


def _words(words: Sequence[str], columns: Sequence[Column], kind: str) -> list[tuple[str, Any]]:
    """Names and values from words such as "light_angle=60"; a shift is a function of the old value."""
    by_name = {column.name: column for column in columns}
    found: dict[str, Any] = {}
    for word in words:
        left, equals, text = word.rpartition("=") if "=" in word else (word, "", "")
        name = left if left in by_name else left.rstrip("+-")
        sign = left[len(name) :]
        if name not in by_name or sign not in SIGNS:
            suggestion = did_you_mean(name.rstrip("*/^%"), by_name)
            raise UsageError(
                f"there is no {kind} '{left}'. {suggestion} Values are set by =, shifted by += or -="
            )
        if name in found:
            raise UsageError(f"{name}: given twice; give it once")
        if categories := category_names(by_name[name].values):
            if sign or not text:
                raise _not_a_category(by_name[name], f"'{sign}='" if sign else "nothing")
            found[name] = text if text in categories else _category_number(by_name[name], text)
            continue
        try:
            number = float(text)
        except ValueError:
            got = f"got '{text}'" if text else "got nothing" if equals else "it has none"
            raise UsageError(f"{name}: give a number, as in {name}=1.5; {got}") from None
        if sign and np.isfinite(number):
            found[name] = partial(operator.add, SIGNS[sign] * number)
        else:
            found[name] = number
    return list(found.items())


def _category_number(column: Column, text: str) -> float:
    """The index of a category that is given by index."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number not in range(len(category_names(column.values))):
        raise _not_a_category(column, repr(text))
    return number
