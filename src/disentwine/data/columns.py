"""From a column of numbers to a factor: its kind, its values, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import numpy as np

from disentwine.contracts.dataset import Factor, FloatArray, Kind
from disentwine.errors import DataError, UsageError, did_you_mean

LISTED = 10
FEW = 20

Where = Callable[[int], str]
"""What the user calls a row: its line in the file, or its index in the array."""


class Problems:
    """Gathers what is wrong, so that it is all mended at once.

    >>> problems = Problems("concepts.csv")
    >>> problems.add("line 2: too short")
    >>> problems.raise_any()
    Traceback (most recent call last):
    disentwine.errors.DataError: concepts.csv: line 2: too short
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0
        self.listed: list[str] = []

    def add(self, problem: str) -> None:
        self.count += 1
        if self.count <= LISTED:
            self.listed.append(problem)

    def raise_any(self) -> None:
        """Raise one error that lists the problems, a line each."""
        if self.count == 1:
            raise DataError(f"{self.source}: {self.listed[0]}")
        if self.count:
            more = [f"and {self.count - LISTED:,} more"] if self.count > LISTED else []
            lines = "\n  ".join(self.listed + more)
            raise DataError(f"{self.source}: {self.count:,} problems\n  {lines}")


def check_kinds(kinds: Mapping[str, Kind], names: Sequence[str]) -> None:
    """Refuse a kind that there is not, or one of a column that there is not.

    >>> check_kinds({"specie": "categorical"}, ["species"])
    Traceback (most recent call last):
    disentwine.errors.UsageError: kinds: there is no column 'specie'. Did you mean 'species'?
    """
    for name, kind in kinds.items():
        if name not in names:
            raise UsageError(f"kinds: there is no column '{name}'. {did_you_mean(name, names)}")
        if kind not in get_args(Kind):
            choices = ", ".join(get_args(Kind))
            raise UsageError(f"kinds: '{name}' is {kind!r}; choose from {choices}")


def number_column(
    name: str,
    values: FloatArray,
    *,
    where: Where,
    problems: Problems,
    allow_missing: bool = False,
    kind: Kind | None = None,
) -> tuple[Factor, FloatArray]:
    """The factor of a column of numbers, where NaN is a missing label.

    Unless `kind` says otherwise, two distinct values are binary, up to 20 distinct integers
    ordinal, all else continuous. Values stay as they are, but for categories, which become
    their index.

    >>> number_column("dice", np.array([1.0, 6.0, 2.0]), where=str, problems=Problems(""))[0].kind
    'ordinal'
    """
    for row in np.flatnonzero(np.isinf(values)):
        problems.add(f"{where(int(row))}, column '{name}': not a finite number")
    if not allow_missing:
        for row in np.flatnonzero(np.isnan(values)):
            problems.add(missing(name, where(int(row))))
    finite = np.isfinite(values)
    known = np.unique(values[finite])
    check_varies(name, [*map(_plainly, known[:2])], len(values), problems)
    check_binary(name, kind, len(known), problems)
    kind = kind or _kind_of(known)
    if kind == "categorical":
        codes = np.full(len(values), np.nan)
        codes[finite] = np.searchsorted(known, values[finite])
        return Factor(name, kind, values=tuple(map(_plainly, known))), codes
    grid = () if kind == "continuous" else tuple(known.tolist())
    return Factor(name, kind, values=grid), values


def _plainly(value: float) -> str:
    return np.format_float_positional(value, trim="-")


def _kind_of(known: FloatArray) -> Kind:
    if len(known) == 2:
        return "binary"
    return "ordinal" if len(known) <= FEW and bool((known % 1 == 0).all()) else "continuous"


def check_varies(name: str, known: Sequence[str], rows: int, problems: Problems) -> None:
    """Refuse a column that says the same of every picture."""
    if not known and rows:
        problems.add(f"column '{name}': no usable value in any row; remove the column")
    elif len(known) == 1 and rows > 1:
        problems.add(f"column '{name}': constant, always {known[0]}; remove the column")


def check_binary(name: str, kind: Kind | None, known: int, problems: Problems) -> None:
    """Refuse a column that is said to be binary but has more values."""
    if kind == "binary" and known > 2:
        problems.add(f"column '{name}': {known:,} distinct values, which is not binary")


def missing(name: str, where: str, cell: str = "") -> str:
    """What is wrong where a label is missing, and was not allowed to."""
    found = f"'{cell}' is no label" if cell else "no label"
    return f"{where}, column '{name}': {found}; fill it in, or pass allow_missing=True"
