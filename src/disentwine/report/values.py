"""At which values concepts are shown, and what these are called."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from disentwine.contracts.dataset import Factor, FloatArray, UInt8Array
from disentwine.data.splits import spread
from disentwine.report.subject import number

LETTERS = 24
"""Of names in one line of a label."""


def shown_values(factor: Factor, column: FloatArray, *, most: int) -> FloatArray:
    """Values to set a factor to, rising: of a continuous one evenly between the 2nd and 98th
    percentile, of others some that occur.

    Arguments:
        factor: to show.
        column: its labels; NaN is "no label".
        most: how many values; there may be fewer of a factor that is not continuous.

    >>> colour = Factor("colour", kind="categorical", values=("red", "blue", "green"))
    >>> shown_values(colour, np.array([2.0, 0.0, 2.0, np.nan]), most=7)
    array([0., 2.])
    """
    known = column[np.isfinite(column)]
    if factor.kind == "continuous":
        least, greatest = np.quantile(known, [0.02, 0.98])
        return np.linspace(least, greatest, most)
    occurring = np.unique(known)
    return occurring[spread(np.arange(len(occurring)), most)]


def in_words(factor: Factor, values: FloatArray) -> str:
    """The names of categories, or from where to where numbers go.

    >>> in_words(Factor("colour", kind="binary", values=("red", "blue")), np.array([0.0, 1.0]))
    'red, blue'
    >>> in_words(Factor("size", kind="ordinal", values=(0.5, 1.0)), np.array([0.5, 1.0]))
    '0.5 to 1'
    """
    if factor.values and isinstance(factor.values[0], str):
        names = ", ".join(str(factor.values[int(value)]) for value in values)
        return textwrap.fill(names, LETTERS)
    return f"{number(values[0])} to {number(values[-1])}"


def even_rows(rows: Sequence[UInt8Array]) -> UInt8Array:
    """(rows, columns, height, width, channels) of rows of images, white where one is shorter.

    >>> one, two = (np.zeros((n, 8, 8, 3), np.uint8) for n in (1, 2))
    >>> even_rows([one, two])[:, 1, 0, 0, 0]
    array([255,   0], dtype=uint8)
    """
    table = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), 255, np.uint8)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return table
