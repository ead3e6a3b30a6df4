"""Grouped bars with spreads and published values."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.style import (
    BLUE,
    GREEN,
    INK,
    LABEL,
    ORANGE,
    PINK,
    SMALL,
    TITLE,
    WIDTH,
    new_figure,
    tidy,
)

LETTERS = 130
"""Letters that fit below all groups together."""

COLOURS = (BLUE, GREEN, PINK, ORANGE)
HEIGHT = 560
GROUP = 132
"""Least width of a group in pixels, for a name of eight or nine letters."""


def grouped_bars(
    values: ArrayLike,
    *,
    spreads: ArrayLike,
    published: ArrayLike,
    groups: Sequence[str],
    bars: Sequence[str],
    title: str = "",
) -> Figure:
    """A group of bars for each system, with one bar for each metric; NaN leaves out a bar.

    Arguments:
        values: (groups, bars).
        spreads: (groups, bars) spread over seeds.
        published: (groups, bars) values of the paper, shown as a line across the bar.
        groups: names of the groups.
        bars: names of the bars.
        title: of the figure.

    >>> figure = grouped_bars(
    ...     [[0.9, 0.8]], spreads=[[0.1, 0.1]], published=[[0.95, np.nan]],
    ...     groups=["causal-vae"], bars=["MIC", "TIC"])
    >>> len(figure.axes[0].patches)
    2
    """
    heights, errors, lines = (np.asarray(v, dtype=float) for v in (values, spreads, published))
    if {heights.shape, errors.shape, lines.shape} != {(len(groups), len(bars))}:
        raise UsageError(f"{len(groups)} groups, {len(bars)} bars do not fit {heights.shape}")
    figure = new_figure(max(WIDTH, GROUP * len(groups)), HEIGHT, layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    width = 0.8 / len(bars)
    for j, name in enumerate(bars):
        x = np.arange(len(groups)) + (j - (len(bars) - 1) / 2) * width
        axes.bar(
            x,
            heights[:, j],
            0.9 * width,
            yerr=np.nan_to_num(errors[:, j]),
            color=COLOURS[j % len(COLOURS)],
            error_kw={"ecolor": INK, "elinewidth": 1},
            label=name,
        )
        axes.hlines(lines[:, j], x - 0.45 * width, x + 0.45 * width, color=INK, linewidth=2.2)
    if np.isfinite(lines).any():
        axes.plot([], [], color=INK, linewidth=2.2, label="published")
    axes.set_xticks(range(len(groups)), [_wrapped(g, len(groups)) for g in groups], fontsize=LABEL)
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    axes.legend(frameon=False, fontsize=SMALL, ncols=len(bars) + 1, loc="upper right")
    axes.set_ylim(
        0, 1.15 * max(1e-9, np.nanmax(np.stack([heights + np.nan_to_num(errors), lines])))
    )
    return figure


def _wrapped(name: str, groups: int) -> str:
    """A name wrapped to the width of its group."""
    width = max(8, LETTERS // groups)
    lines = (textwrap.fill(line, width, break_long_words=False) for line in name.splitlines())
    return "\n".join(lines)
