"""Formats of numbers and durations; values and labels of image rows."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from disentwine.core.dataset import Factor, evenly_spaced
from disentwine.core.types import FloatArray, UInt8Array


def number(value: float) -> str:
    """A number with four digits; a dash for NaN and infinity.

    >>> number(601.9436), number(1234567.0), number(0.00012345), number(7.0), number(math.nan)
    ('601.9', '1,234,567', '0.0001234', '7', '-')
    """
    if not math.isfinite(value):
        return "-"
    if float(value).is_integer() or abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:,.4g}"


def duration(seconds: float) -> str:
    """A time span in seconds, minutes or hours.

    >>> duration(8.21), duration(400), duration(9000)
    ('8.2 seconds', '6.7 minutes', '2.5 hours')
    """
    for limit, unit, length in ((60, "seconds", 1), (3600, "minutes", 60)):
        if seconds < limit:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 3600:.1f} hours"


LETTERS = 24
"""Most letters in one line of a label."""


def display_values(factor: Factor, column: FloatArray, *, most: int) -> FloatArray:
    """Ascending values to set a factor to: evenly between the 2nd and 98th percentile of a continuous
    one, and values that occur of others.

    Arguments:
        factor: to show.
        column: its labels; NaN is "no label".
        most: how many values; a factor that is not continuous may have fewer.

    >>> colour = Factor("colour", kind="categorical", values=("red", "blue", "green"))
    >>> display_values(colour, np.array([2.0, 0.0, 2.0, np.nan]), most=7)
    array([0., 2.])
    """
    known = column[np.isfinite(column)]
    if factor.kind == "continuous":
        least, greatest = np.quantile(known, [0.02, 0.98])
        return np.linspace(least, greatest, most)
    occurring = np.unique(known)
    return occurring[evenly_spaced(np.arange(len(occurring)), most)]


def value_labels(factor: Factor, values: FloatArray) -> str:
    """The names of categories, or the range of numbers.

    >>> value_labels(Factor("colour", kind="binary", values=("red", "blue")), np.array([0.0, 1.0]))
    'red, blue'
    >>> value_labels(Factor("size", kind="ordinal", values=(0.5, 1.0)), np.array([0.5, 1.0]))
    '0.5 to 1'
    """
    if factor.values and isinstance(factor.values[0], str):
        names = ", ".join(str(factor.values[int(value)]) for value in values)
        return textwrap.fill(names, LETTERS)
    return f"{number(values[0])} to {number(values[-1])}"


def pad_rows(rows: Sequence[UInt8Array]) -> UInt8Array:
    """(rows, columns, height, width, channels) of rows of images, padded with white.

    >>> one, two = (np.zeros((n, 8, 8, 3), np.uint8) for n in (1, 2))
    >>> pad_rows([one, two])[:, 1, 0, 0, 0]
    array([255,   0], dtype=uint8)
    """
    table = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), 255, np.uint8)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return table
