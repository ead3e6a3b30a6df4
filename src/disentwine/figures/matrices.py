"""Figures of matrices: which code knows of which factor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.style import BLUE, INK, LABEL, PAPER, QUIET, SMALL, TITLE, new_figure

SHADES = LinearSegmentedColormap.from_list("paper to blue", [PAPER, BLUE])
CELL_WIDTH, CELL_HEIGHT, MOST_ROWS = 200, 56, 40


def score_matrix(
    matrix: ArrayLike, *, rows: Sequence[str], columns: Sequence[str], title: str = ""
) -> Figure:
    """A heat map with its numbers; the darkest cell of a column is that factor's best code.

    Arguments:
        matrix: (rows, columns), scores from 0 up.
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
        strongest = np.sort(np.argsort(-values.max(axis=1), kind="stable")[:MOST_ROWS])
        values, rows = values[strongest], [rows[i] for i in strongest]
    height, width = len(values) * CELL_HEIGHT + 170, len(columns) * CELL_WIDTH + 220
    figure = new_figure(width, height, layout="constrained")
    axes = figure.subplots()
    most = max(1.0, float(values.max(initial=0)))
    axes.imshow(values, cmap=SHADES, vmin=0, vmax=most, aspect="auto")
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    axes.set_xticks(range(len(columns)), [name.replace("_", " ") for name in columns])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(length=0, labelsize=LABEL, labelcolor=QUIET, top=True, bottom=False)
    axes.tick_params(axis="x", labeltop=True, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        ink = PAPER if value > 0.55 * most else INK
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=SMALL, color=ink)
    return figure
