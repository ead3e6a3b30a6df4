"""Heat maps of scores per latent and factor, and of effects of interventions."""

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
    """Heat map of non-negative scores; the darkest cell of a column is the best latent of a factor.

    Arguments:
        matrix: (rows, columns) scores; of more than 40 rows, the best of each column are shown.
        rows: names of the latents.
        columns: names of the factors.
        title: name of the score.

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
    """The best row of each column, the second best of each, and so on up to `most` rows, sorted.

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
    """Heat maps of the expected effects of interventions, the measured effects, and their error.

    Arguments:
        expected: (rows, columns) mean absolute effect in standard deviations of the label; NaN if
            unknown.
        actual: (rows, columns) the effect in counterfactual images, measured by the concept probe.
        error: (rows, columns) of the measured values.
        rows: intervened concepts.
        columns: measured concepts.
        floor: error of the probe itself, below each error.

    >>> figure = effect_matrix_figure(
    ...     expected=[[1.2, 0]], actual=[[1.1, 0.1]], error=[[0.2, 0.1]], floor=[[0.05, 0.04]],
    ...     rows=["light"], columns=["light", "angle"])
    >>> [text.get_text() for text in figure.axes[2].texts]
    ['0.20\\n(0.05)', '0.10\\n(0.04)']
    """
    panels = {"expected effect": expected, "measured effect": actual, "error": error}
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
        first, last = title == "expected effect", title == "error"
        texts = _two_digits(table)
        if last and floor is not None:
            floors = _two_digits(np.asarray(floor, dtype=np.float64))
            texts = [
                [f"{a}\n({b})" if b else a for a, b in zip(*pair, strict=True)]
                for pair in zip(texts, floors, strict=True)
            ]
        names = [f"do({name.replace('_', ' ')})" for name in rows] if first else []
        heat_map(axes, table, texts=texts, most=most, rows=names, columns=columns, letters=9)
        more = " (of the probe itself)" if last and floor is not None else ""
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
        values: non-negative; NaN is white.
        texts: text of each cell.
        most: value of the darkest shade.
        rows: names of the rows; empty for none.
        columns: names of the columns; empty for none.
        letters: width at which names of columns are wrapped.
    """
    axes.imshow(values, cmap=SHADES, vmin=0, vmax=most, aspect="auto")
    wrapped = [textwrap.fill(name.replace("_", " "), letters) for name in columns]
    axes.set_xticks(range(len(columns)), wrapped, parse_math=False)
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
