"""Figures of matrices: which code knows of which factor, which intervention moves which concept."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from disentwine.errors import UsageError
from disentwine.figures.style import (
    BLUE,
    HAIRLINE,
    INK,
    LABEL,
    PAPER,
    QUIET,
    SMALL,
    TITLE,
    WIDTH,
    new_figure,
)

SHADES = LinearSegmentedColormap.from_list("paper to blue", [PAPER, BLUE])
CELL_WIDTH, CELL_HEIGHT, MOST_ROWS = 200, 56, 40


def score_matrix(
    matrix: ArrayLike, *, rows: Sequence[str], columns: Sequence[str], title: str = ""
) -> Figure:
    """A heat map with its numbers; the darkest cell of a column is that factor's best code.

    Arguments:
        matrix: (rows, columns), scores from 0 up; of more than 40 rows the best of each column.
        rows: a name for each code.
        columns: a name for each factor.
        title: what the numbers are.

    >>> figure = score_matrix([[0.9, 0.1]], rows=["z0"], columns=["angle", "light"], title="MIC")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.90', '0.10']
    """
    values = np.asarray(matrix, dtype=np.float64)
    if values.shape != (len(rows), len(columns)):
        raise UsageError(f"{len(rows)} rows, {len(columns)} columns do not fit {values.shape}")
    if len(values) > MOST_ROWS:
        strongest = strongest_rows(values, MOST_ROWS)
        values, rows = values[strongest], [rows[i] for i in strongest]
    height, width = len(values) * CELL_HEIGHT + 170, len(columns) * CELL_WIDTH + 220
    figure = new_figure(width, height, layout="constrained")
    axes = figure.subplots()
    most = max(1.0, float(values.max(initial=0)))
    heat_map(axes, values, texts=_two_digits(values), most=most, rows=rows, columns=columns)
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    return figure


def strongest_rows(values: NDArray[np.float64], most: int) -> list[int]:
    """The best row of each column, the second best of each, and so on, at most so many, in their order.

    >>> strongest_rows(np.array([[0.9, 0.0], [0.8, 0.0], [0.7, 0.0], [0.0, 0.1]]), 2)
    [0, 3]
    """
    order = np.argsort(-np.nan_to_num(values), axis=0, kind="stable")
    return sorted(list(dict.fromkeys(order.ravel().tolist()))[:most])


def effect_matrix_figure(
    *,
    expected: ArrayLike,
    actual: ArrayLike,
    error: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    floor: ArrayLike | None = None,
) -> Figure:
    """What interventions should move, what they do move, and how far off it is, as heat maps.

    Arguments:
        expected: (rows, columns) mean absolute movement, in deviations of the label; NaN where
            nobody knows it.
        actual: the same as read back from do-images.
        error: of what was read back.
        rows: concepts that were set.
        columns: concepts that were read.
        floor: the reader's own error, written below each error.

    >>> figure = effect_matrix_figure(
    ...     expected=[[1.2, 0]], actual=[[1.1, 0.1]], error=[[0.2, 0.1]], floor=[[0.05, 0.04]],
    ...     rows=["light"], columns=["light", "angle"])
    >>> [text.get_text() for text in figure.axes[2].texts]
    ['0.20\\n(0.05)', '0.10\\n(0.04)']
    """
    panels = {"should move": expected, "moves": actual, "error of what is read": error}
    tables = {title: np.asarray(values, dtype=np.float64) for title, values in panels.items()}
    if any(table.shape != (len(rows), len(columns)) for table in tables.values()):
        raise UsageError(
            f"{len(rows)} rows, {len(columns)} columns do not fit "
            f"{', '.join(str(table.shape) for table in tables.values())}"
        )
    figure = new_figure(WIDTH, len(rows) * 96 + 190, layout="constrained")
    most = max(1.0, *(float(np.nanmax(table)) for table in tables.values()))
    grid = figure.subplots(1, 3, gridspec_kw={"wspace": 0.06})
    for axes, (title, table) in zip(grid, tables.items(), strict=True):
        first, last = title == "should move", title == "error of what is read"
        texts = _two_digits(table)
        if last and floor is not None:
            floors = _two_digits(np.asarray(floor, dtype=np.float64))
            texts = [
                [f"{a}\n({b})" if b else a for a, b in zip(*pair, strict=True)]
                for pair in zip(texts, floors, strict=True)
            ]
        names = [f"do({name.replace('_', ' ')})" for name in rows] if first else []
        heat_map(axes, table, texts=texts, most=most, rows=names, columns=columns, letters=9)
        more = " (reader's own)" if last and floor is not None else ""
        axes.set_title(title + more, loc="left", fontsize=TITLE, color=INK)
    return figure


def heat_map(
    axes: Axes,
    values: NDArray[np.float64],
    *,
    texts: Sequence[Sequence[str]],
    most: float,
    rows: Sequence[str],
    columns: Sequence[str],
    letters: int = 16,
) -> None:
    """Fill axes with shaded cells and their texts.

    Arguments:
        axes: to draw on.
        values: from 0 up; NaN is left white.
        texts: written into each cell.
        most: the value that is darkest.
        rows: their names, none to leave them out.
        columns: their names, none to leave them out.
        letters: in a line of a column's name, which is broken where it is longer.
    """
    axes.imshow(values, cmap=SHADES, vmin=0, vmax=most, aspect="auto")
    broken = [textwrap.fill(name.replace("_", " "), letters) for name in columns]
    axes.set_xticks(range(len(columns)), broken, parse_math=False)
    shown = [name.replace("_", " ") for name in rows]
    axes.set_yticks(range(len(rows)), shown, parse_math=False)
    axes.tick_params(length=0, labelsize=LABEL, labelcolor=QUIET, top=True, bottom=False)
    axes.tick_params(axis="x", labeltop=True, labelbottom=False)
    for spine in axes.spines.values():
        spine.set(color=HAIRLINE, linewidth=0.8)
    for (i, j), value in np.ndenumerate(values):
        ink = PAPER if value > 0.55 * most else INK
        axes.text(j, i, texts[i][j], ha="center", va="center", fontsize=SMALL, color=ink)


def _two_digits(values: NDArray[np.float64]) -> list[list[str]]:
    return [["" if np.isnan(value) else f"{value:.2f}" for value in row] for row in values]
