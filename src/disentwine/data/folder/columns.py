"""Parsing of table cells and columns into factors; collected problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import get_args

import numpy as np

from disentwine.core.dataset import Factor
from disentwine.core.types import FloatArray, Kind
from disentwine.errors import DataError, UsageError, did_you_mean

NO_LABEL = frozenset(["", "-", "?", "na", "n/a", "#n/a", "null", "nan", "+nan", "-nan"])
"""Contents of cells without a label, in lower case."""

NONE = "none"
"""Ambiguous: a missing label, or a category, such as the beard "none"."""

CASE_INSENSITIVE = frozenset(["true", "false", "yes", "no", NONE])
"""Category names whose case is ignored: spreadsheets write TRUE, Python writes True."""

_MINUS = "\N{MINUS SIGN}"

_EXPONENT = r"([eE][+-]?\d+)?"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)" + _EXPONENT)

_GROUPED = re.compile(r"[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)?(\.\d+)?" + _EXPONENT)

_NOT_FINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


def is_missing(cell: str) -> bool:
    """Whether a cell has no label.

    >>> [is_missing(cell) for cell in ("", "N/A", "?", "none")]
    [True, True, True, False]
    """
    return _ascii_minus(cell).lower() in NO_LABEL


def is_infinite(cell: str) -> bool:
    """Whether a cell is infinity, which is not a label."""
    return bool(_NOT_FINITE.fullmatch(_ascii_minus(cell)))


def number_in(cell: str) -> float | None:
    """The number in a cell, if it is unambiguous.

    >>> number_in("-2e3"), number_in("1,5"), number_in("red")
    (-2000.0, None, None)
    """
    plain = _ascii_minus(cell)
    return float(plain) if _NUMBER.fullmatch(plain) else None


def name_in(cell: str) -> str:
    """The name of a category in a cell.

    >>> name_in("TRUE"), name_in("Red")
    ('true', 'Red')
    """
    folded = cell.lower()
    return folded if folded in CASE_INSENSITIVE else cell


def possible_numbers(cell: str) -> list[str]:
    """The possible values of a cell with commas or a percent sign.

    >>> [possible_numbers(cell) for cell in ("1,5", "1,234", "1.234,5", "10%", "red")]
    [['1.5'], ['1.234', '1234'], ['1234.5'], ['0.1'], []]
    """
    plain = _ascii_minus(cell)
    if plain.endswith("%"):
        percent = plain[:-1].rstrip()
        numbers = [percent] if number_in(percent) is not None else possible_numbers(percent)
        return [f"{float(number) / 100:.12g}" for number in numbers]
    swapped = plain.translate(str.maketrans(",.", ".,"))
    numbers = [text.replace(",", "") for text in (swapped, plain) if _GROUPED.fullmatch(text)]
    return [number for number in numbers if number_in(number) is not None]


def _ascii_minus(cell: str) -> str:
    return cell.replace(_MINUS, "-")


MAX_LISTED = 10

MAX_ORDINAL_VALUES = 20

Where = Callable[[int], str]
"""Description of a row in errors: its line in the file, or its index in the array."""


class Problems:
    """Collects problems, so that one error reports all of them.

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
        if self.count <= MAX_LISTED:
            self.listed.append(problem)

    def raise_any(self) -> None:
        """Raise one error that lists the problems, one per line."""
        if self.count == 1:
            raise DataError(f"{self.source}: {self.listed[0]}")
        if self.count:
            more = [f"and {self.count - MAX_LISTED:,} more"] if self.count > MAX_LISTED else []
            lines = "\n  ".join(self.listed + more)
            raise DataError(f"{self.source}: {self.count:,} problems\n  {lines}")


def check_kinds(kinds: Mapping[str, Kind], names: Sequence[str]) -> None:
    """Refuse unknown kinds and kinds of unknown columns.

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
    """Factor and values of a column of numbers; NaN is a missing label.

    Unless `kind` is given, two distinct values are binary, up to 20 distinct integers ordinal, and
    everything else continuous. Values are unchanged, except categories, which become their index.

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
    check_varies(name, [*map(_shortest, known[:2])], len(values), problems)
    check_binary(name, kind, len(known), problems)
    kind = kind or _kind_of(known)
    if kind == "categorical":
        indices = np.full(len(values), np.nan)
        indices[finite] = np.searchsorted(known, values[finite])
        return Factor(name, kind, values=tuple(map(_shortest, known))), indices
    grid = () if kind == "continuous" else tuple(known.tolist())
    return Factor(name, kind, values=grid), values


def _shortest(value: float) -> str:
    return np.format_float_positional(value, trim="-")


def _kind_of(known: FloatArray) -> Kind:
    if len(known) == 2:
        return "binary"
    return (
        "ordinal"
        if len(known) <= MAX_ORDINAL_VALUES and bool((known % 1 == 0).all())
        else "continuous"
    )


def check_varies(name: str, known: Sequence[str], rows: int, problems: Problems) -> None:
    """Report a column that is constant or empty."""
    if not known and rows:
        problems.add(f"column '{name}': no usable value in any row; remove the column")
    elif len(known) == 1 and rows > 1:
        problems.add(f"column '{name}': constant, always {known[0]}; remove the column")


def check_binary(name: str, kind: Kind | None, known: int, problems: Problems) -> None:
    """Report a column declared binary that has more than two values."""
    if kind == "binary" and known > 2:
        problems.add(f"column '{name}': {known:,} distinct values, but declared binary")


def missing(name: str, where: str, cell: str = "") -> str:
    """Message for a missing label that is not allowed."""
    found = f"'{cell}' is not a label" if cell else "no label"
    return f"{where}, column '{name}': {found}; fill it in, or pass allow_missing=True"


def text_column(
    name: str,
    cells: Sequence[str],
    *,
    where: Where,
    problems: Problems,
    allow_missing: bool = False,
    kind: Kind | None = None,
) -> tuple[Factor, FloatArray]:
    """Factor and values of a column of text: numbers, or else categories.

    Unless `kind` is given, the majority of the cells decides. The word "none" is a missing label
    among numbers; among names it is ambiguous and refused, unless `kind` is "categorical".

    >>> cells = ["red", "blue", "red", "green"]
    >>> factor, values = text_column("hue", cells, where=str, problems=Problems(""))
    >>> factor.values, values
    (('blue', 'green', 'red'), array([2., 0., 2., 1.]))
    """
    values = np.full(len(cells), np.nan)
    words: dict[int, str] = {}
    empty, nones = [], []
    for row, cell in enumerate(cells):
        number = number_in(cell)
        if number is not None:
            values[row] = number
        elif is_missing(cell):
            empty.append(row)
        elif is_infinite(cell):
            remedy = "write a number, or leave the cell empty and pass allow_missing=True"
            problems.add(f"{where(row)}, column '{name}': '{cell}' is not a label; {remedy}")
        elif cell.lower() == NONE and kind != "categorical":
            nones.append(row)
        else:
            words[row] = cell
    named = _holds_names(values, words.values(), kind)
    if named and nones:
        problems.add(_ambiguous_none(name, where(nones[0]), [cells[row] for row in nones]))
    if not allow_missing:
        for row in empty if named else sorted(empty + nones):
            problems.add(missing(name, where(row), cells[row]))
    if named:
        return _category_column(name, cells, problems, kind)
    for row, word in words.items():
        problems.add(f"{where(row)}, column '{name}': {_not_a_number(word, kind)}")
    return number_column(
        name, values, where=where, problems=problems, allow_missing=True, kind=kind
    )


def _holds_names(values: FloatArray, words: Collection[str], kind: Kind | None) -> bool:
    if kind == "categorical":
        return bool(words)
    if kind in ("continuous", "ordinal"):
        return False
    numbers = (~np.isnan(values)).sum() + sum(bool(possible_numbers(word)) for word in words)
    return bool(len(words) > numbers)


def _category_column(
    name: str, cells: Sequence[str], problems: Problems, kind: Kind | None
) -> tuple[Factor, FloatArray]:
    words = ["" if is_missing(cell) or is_infinite(cell) else name_in(cell) for cell in cells]
    known = sorted({*words} - {""})
    check_varies(name, known, len(cells), problems)
    check_binary(name, kind, len(known), problems)
    if len(known) == len(cells) > MAX_ORDINAL_VALUES:
        problems.add(f"column '{name}': a different text in every row; remove it, or group it")
    index = {word: float(i) for i, word in enumerate(known)}
    indices = np.array([index.get(word, np.nan) for word in words])
    kind = kind or ("binary" if len(known) == 2 else "categorical")
    return Factor(name, kind, values=tuple(known)), indices


def _ambiguous_none(name: str, where: str, cells: Sequence[str]) -> str:
    rows = f" in {len(cells):,} rows" if len(cells) > 1 else ""
    remedy = f"leave the cell empty, or keep the name with kinds={{'{name}': 'categorical'}}"
    return (
        f"{where}, column '{name}': '{cells[0]}'{rows} may be a name or a missing label; {remedy}"
    )


def _not_a_number(word: str, kind: Kind | None) -> str:
    numbers = " or ".join(possible_numbers(word))
    which = ", whichever is right" if " or " in numbers else ""
    reason = f"; {kind} values are" if kind else ", as most of this column are"
    return f"'{word[:40]}' is not a number{f'; write {numbers}{which}' if numbers else reason}"
