"""From a raw column to a factor: its kind, its values, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from disentwine.contracts.dataset import Factor, FloatArray, Kind
from disentwine.data.cells import NONE, is_infinite, is_missing, name_in, number_in, readings
from disentwine.errors import DataError

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
            problems.add(_missing(name, where(int(row))))
    finite = np.isfinite(values)
    known = np.unique(values[finite])
    _check_varies(name, [*map(_plainly, known[:2])], len(values), problems)
    if kind == "binary" and len(known) > 2:
        problems.add(f"column '{name}': {len(known):,} distinct values, which is not binary")
    kind = kind or _kind_of(known)
    if kind == "categorical":
        codes = np.full(len(values), np.nan)
        codes[finite] = np.searchsorted(known, values[finite])
        return Factor(name, kind, values=tuple(map(_plainly, known))), codes
    grid = () if kind == "continuous" else tuple(known.tolist())
    return Factor(name, kind, values=grid), values


def text_column(
    name: str,
    cells: Sequence[str],
    *,
    where: Where,
    problems: Problems,
    allow_missing: bool = False,
) -> tuple[Factor, FloatArray]:
    """The factor of a column of text: numbers if it holds numbers, else categories.

    >>> cells = ["red", "blue", "red", "green"]
    >>> factor, values = text_column("hue", cells, where=str, problems=Problems(""))
    >>> factor.values, values
    (('blue', 'green', 'red'), array([2., 0., 2., 1.]))
    """
    values = np.full(len(cells), np.nan)
    words: dict[int, str] = {}
    missing, nones = [], []
    for row, cell in enumerate(cells):
        number = number_in(cell)
        if number is not None:
            values[row] = number
        elif is_missing(cell):
            missing.append(row)
        elif is_infinite(cell):
            remedy = "write a number, or leave the cell empty and pass allow_missing=True"
            problems.add(f"{where(row)}, column '{name}': '{cell}' is no label; {remedy}")
        elif cell.lower() == NONE:
            nones.append(row)
        else:
            words[row] = cell
    numbers = (~np.isnan(values)).sum() + sum(bool(readings(word)) for word in words.values())
    named = len(words) > numbers
    if named and nones:
        problems.add(_unsure(name, where(nones[0]), [cells[row] for row in nones]))
    if not allow_missing:
        for row in missing if named else sorted(missing + nones):
            problems.add(_missing(name, where(row), cells[row]))
    if named:
        return _category_column(name, cells, problems)
    for row, word in words.items():
        problems.add(f"{where(row)}, column '{name}': {_not_a_number(word)}")
    return number_column(name, values, where=where, problems=problems, allow_missing=True)


def _category_column(
    name: str, cells: Sequence[str], problems: Problems
) -> tuple[Factor, FloatArray]:
    words = ["" if is_missing(cell) or is_infinite(cell) else name_in(cell) for cell in cells]
    known = sorted({*words} - {""})
    _check_varies(name, known, len(cells), problems)
    if len(known) == len(cells) > FEW:
        problems.add(f"column '{name}': a different text in every row; remove it, or group it")
    index = {word: float(i) for i, word in enumerate(known)}
    codes = np.array([index.get(word, np.nan) for word in words])
    return Factor(name, "binary" if len(known) == 2 else "categorical", values=tuple(known)), codes


def _plainly(value: float) -> str:
    return np.format_float_positional(value, trim="-")


def _kind_of(known: FloatArray) -> Kind:
    if len(known) == 2:
        return "binary"
    return "ordinal" if len(known) <= FEW and bool((known % 1 == 0).all()) else "continuous"


def _check_varies(name: str, known: Sequence[str], rows: int, problems: Problems) -> None:
    if not known and rows:
        problems.add(f"column '{name}': no usable value in any row; remove the column")
    elif len(known) == 1 and rows > 1:
        problems.add(f"column '{name}': constant, always {known[0]}; remove the column")


def _missing(name: str, where: str, cell: str = "") -> str:
    found = f"'{cell}' is no label" if cell else "no label"
    return f"{where}, column '{name}': {found}; fill it in, or pass allow_missing=True"


def _unsure(name: str, where: str, cells: Sequence[str]) -> str:
    rows = f" in {len(cells):,} rows" if len(cells) > 1 else ""
    remedy = "write another name, or leave the cell empty"
    return f"{where}, column '{name}': '{cells[0]}'{rows} may be a name or no label; {remedy}"


def _not_a_number(word: str) -> str:
    meant = " or ".join(readings(word))
    which = ", whichever is meant" if " or " in meant else ""
    remedy = f"; write {meant}{which}" if meant else ", as most of this column are"
    return f"'{word[:40]}' is not a number{remedy}"
