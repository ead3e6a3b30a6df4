"""From a column of text to a factor: numbers or names, whichever it holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from disentwine.contracts.dataset import Factor, FloatArray, Kind
from disentwine.data.cells import NONE, is_infinite, is_missing, name_in, number_in, readings
from disentwine.data.columns import (
    FEW,
    Problems,
    Where,
    check_binary,
    check_varies,
    missing,
    number_column,
)


def text_column(
    name: str,
    cells: Sequence[str],
    *,
    where: Where,
    problems: Problems,
    allow_missing: bool = False,
    kind: Kind | None = None,
) -> tuple[Factor, FloatArray]:
    """The factor of a column of text: numbers if it holds numbers, else categories.

    Unless `kind` says otherwise, the larger part decides. The word "none" is a missing label among
    numbers; among names it is refused, since it may be one, unless `kind` is "categorical".

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
            problems.add(f"{where(row)}, column '{name}': '{cell}' is no label; {remedy}")
        elif cell.lower() == NONE and kind != "categorical":
            nones.append(row)
        else:
            words[row] = cell
    named = _holds_names(values, words.values(), kind)
    if named and nones:
        problems.add(_unsure(name, where(nones[0]), [cells[row] for row in nones]))
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
    numbers = (~np.isnan(values)).sum() + sum(bool(readings(word)) for word in words)
    return bool(len(words) > numbers)


def _category_column(
    name: str, cells: Sequence[str], problems: Problems, kind: Kind | None
) -> tuple[Factor, FloatArray]:
    words = ["" if is_missing(cell) or is_infinite(cell) else name_in(cell) for cell in cells]
    known = sorted({*words} - {""})
    check_varies(name, known, len(cells), problems)
    check_binary(name, kind, len(known), problems)
    if len(known) == len(cells) > FEW:
        problems.add(f"column '{name}': a different text in every row; remove it, or group it")
    index = {word: float(i) for i, word in enumerate(known)}
    codes = np.array([index.get(word, np.nan) for word in words])
    kind = kind or ("binary" if len(known) == 2 else "categorical")
    return Factor(name, kind, values=tuple(known)), codes


def _unsure(name: str, where: str, cells: Sequence[str]) -> str:
    rows = f" in {len(cells):,} rows" if len(cells) > 1 else ""
    remedy = f"leave the cell empty, or keep the name with kinds={{'{name}': 'categorical'}}"
    return f"{where}, column '{name}': '{cells[0]}'{rows} may be a name or no label; {remedy}"


def _not_a_number(word: str, kind: Kind | None) -> str:
    meant = " or ".join(readings(word))
    which = ", whichever is meant" if " or " in meant else ""
    due = f"; {kind} values are" if kind else ", as most of this column are"
    return f"'{word[:40]}' is not a number{f'; write {meant}{which}' if meant else due}"
