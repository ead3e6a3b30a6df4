"""Shared style of figures: colour-blind safe palette, text sizes, PNG output."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

DPI = 150
WIDTH = 1840
"""Pixels: twice the width of the report's column, for high-resolution screens."""

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER = "#56B4E9", "#E69F00"
"""Palette of M. Okabe and K. Ito, 2008."""

INK, QUIET, HAIRLINE, PAPER = "#22262B", "#6B7280", "#D5D9DF", "#FFFFFF"
TITLE, LABEL, SMALL = 12.5, 11.0, 10.0
"""Text sizes in points."""

LETTER, KEY = 0.58, 4.5
"""Widths in a legend relative to its text size: of a letter, and of a key with its margins."""

Layout = Literal["constrained"] | None


def new_figure(width: float, height: float, *, layout: Layout = None) -> Figure:
    """A white figure with a size in pixels, independent of pyplot's state."""
    return Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=PAPER, layout=layout)


def tidy(axes: Axes) -> None:
    """Style axes: two thin spines, grey ticks and a faint grid."""
    axes.set_facecolor(PAPER)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(HAIRLINE)
        spine.set_linewidth(0.8)
    axes.tick_params(
        which="both", labelsize=SMALL, colors=QUIET, labelcolor=QUIET, width=0.8, length=3
    )
    axes.grid(visible=True, axis="y", color=HAIRLINE, linewidth=0.5, alpha=0.7)
    axes.set_axisbelow(True)


def legend_above(figure: Figure, handles: Mapping[str, Any]) -> None:
    """Add one legend above all panels, in as few lines as possible.

    Arguments:
        figure: with constrained layout.
        handles: legend handle for each name.
    """
    names = list(handles)
    room = figure.get_figwidth() * 72 / LABEL
    widths = [KEY + LETTER * len(name) for name in names]
    fitting = (
        columns
        for columns in range(len(names), 1, -1)
        if sum(max(widths[i] for i in column) for column in _columns(len(names), columns)) <= room
    )
    figure.legend(
        handles=list(handles.values()),
        labels=names,
        loc="outside upper right",
        ncols=next(fitting, 1),
        frameon=False,
        fontsize=LABEL,
        labelcolor=INK,
    )


def _columns(n: int, columns: int) -> list[range]:
    """Entries of each legend column, as matplotlib distributes them.

    >>> _columns(5, 3)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    least, more = divmod(n, columns)
    ends = [least * i + min(i, more) for i in range(columns + 1)]
    return [range(*ends[i : i + 2]) for i in range(columns)]


def to_png_bytes(figure: Figure) -> bytes:
    """The figure as a PNG; equal figures give equal bytes."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write the figure as a PNG and return its path."""
    path = Path(path)
    path.write_bytes(to_png_bytes(figure))
    return path
