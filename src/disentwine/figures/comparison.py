"""Comparison of models: traversal grids and trade-off curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.images import UInt8Array, mosaic
from disentwine.figures.style import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    LABEL,
    ORANGE,
    PAPER,
    PINK,
    QUIET,
    SKY,
    SMALL,
    TITLE,
    WIDTH,
    legend_above,
    new_figure,
    tidy,
)

SERIES_STYLES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PINK, "D"), (AMBER, "v"), (SKY, "P"))
MORE_STYLES = ((BLUE, "*"), (ORANGE, "X"), (GREEN, "<"), (PINK, "h"), (AMBER, ">"), (SKY, "d"))
"""A colour and a marker for each method; later ones have the same colours with other markers."""

STRIP_GAP = 4
SIDES = ((5, 5), (5, -11), (-14, 5), (-14, -11), (5, 15), (5, -21))
"""Possible offsets of a number from its point."""


def traversal_grid(images: UInt8Array, *, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Latent traversals of several models, for example with a row per model and a column per factor.

    Each strip shows one latent, with its value increasing from left to right.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar et al., 2018, fig. 3.

    Arguments:
        images: (rows, columns, values, height, width, channels).
        rows: a name for each row, such as a model; a second line is grey.
        columns: a name for each column of strips, such as a factor.

    >>> strips = np.zeros((2, 3, 5, 8, 8, 1), np.uint8)
    >>> figure = traversal_grid(strips, rows=["VAE", "DIP-VAE-I"], columns=["x", "y", "scale"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['x', 'y', 'scale', 'VAE', 'DIP-VAE-I']
    """
    if images.ndim != 6 or images.shape[:2] != (len(rows), len(columns)):
        raise UsageError(
            f"{len(rows)} rows and {len(columns)} columns do not fit traversals {images.shape}; give "
            f"(rows, columns, values, height, width, channels)"
        )
    side_by_side = images.reshape(len(rows), -1, *images.shape[3:])
    return mosaic(
        side_by_side,
        row_labels=rows,
        column_labels=columns,
        gap=STRIP_GAP,
        group=images.shape[2],
    )


@dataclass(frozen=True)
class Curve:
    """Scores of a method over one of its settings.

    Arguments:
        name: of the method.
        settings: value of the setting for each point.
        errors: reconstruction error of each point.
        scores: of each point, by name.
        spreads: of the scores over seeds, by name.
        published: whether these are values of a paper; they have hollow markers.
    """

    name: str
    settings: Sequence[float]
    errors: ArrayLike
    scores: Mapping[str, ArrayLike]
    spreads: Mapping[str, ArrayLike] = field(default_factory=dict)
    published: bool = False


def trade_off(curves: Sequence[Curve], *, error: str = "reconstruction error per pixel") -> Figure:
    """Scores against reconstruction error: a panel for each score, a curve for each method.

    The number beside a point is its setting.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar et al., 2018, fig. 1 and 2.

    Arguments:
        curves: one for each method, and one for its published values.
        error: label of the horizontal axis.

    >>> curve = Curve("beta-VAE", [1, 4], errors=[0.002, 0.003], scores={"SAP": [0.04, 0.08]})
    >>> [axes.get_title(loc="left") for axes in trade_off([curve]).axes]
    ['SAP']
    """
    names = list(dict.fromkeys(name for curve in curves for name in curve.scores))
    if not names:
        raise UsageError("there are no scores to plot: give at least one curve with one score")
    methods = dict.fromkeys(curve.name for curve in curves)
    styles = dict(zip(methods, cycle(SERIES_STYLES + MORE_STYLES), strict=False))
    figure = new_figure(WIDTH, 800, layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axes, name in zip(panels, names, strict=True):
        tidy(axes)
        axes.set_title(name, loc="left", fontsize=TITLE, color=INK, parse_math=False)
        axes.set_xlabel(error, fontsize=LABEL, color=QUIET, parse_math=False)
        for curve in curves:
            if name in curve.scores:
                handles |= _plot(axes, curve, name, *styles[curve.name])
        # A logarithmic axis separates the small errors of good methods.
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(0.08)
    legend_above(figure, handles)
    figure.draw_without_rendering()  # determines the positions of the numbers
    for axes in panels:
        _separate([text for text in axes.texts if isinstance(text, Annotation)])
    return figure


def _separate(numbers: Sequence[Annotation]) -> None:
    """Move numbers that overlap earlier ones to another side of their points."""
    taken: list[Bbox] = []
    for number in numbers:
        own = number.xyann
        for place in (own, *SIDES):
            number.xyann = place
            box = number.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
        else:
            number.xyann = own
            box = number.get_window_extent()
        taken.append(box)


def _plot(axes: Axes, curve: Curve, name: str, colour: str, marker: str) -> dict[str, Any]:
    x, y = (np.asarray(v, dtype=np.float64) for v in (curve.errors, curve.scores[name]))
    if not len(curve.settings) == len(x) == len(y):
        raise UsageError(
            f"the curve of {curve.name} has {len(curve.settings)} settings, {len(x)} errors and "
            f"{len(y)} values of {name}; give one of each for every point"
        )
    if not (x > 0).all():
        raise UsageError(
            f"the errors of {curve.name} must be above 0, because their axis is logarithmic"
        )
    order = np.argsort(curve.settings, kind="stable")
    spread = curve.spreads.get(name)
    plotted = axes.errorbar(
        x[order],
        y[order],
        yerr=None if spread is None else np.asarray(spread, dtype=np.float64)[order],
        color=colour,
        marker=marker,
        markersize=6.5,
        markerfacecolor=PAPER if curve.published else colour,
        linewidth=1.0 if curve.published else 1.7,
        linestyle=(0, (3, 3)) if curve.published else "-",
        elinewidth=1.0,
        capsize=2.5,
    )
    for setting, place_x, place_y in zip(curve.settings, x, y, strict=True):
        axes.annotate(
            f"{setting:g}",
            (place_x, place_y),
            xytext=(5, -11) if curve.published else (5, 5),
            textcoords="offset points",
            fontsize=SMALL - 1.5,
            color=colour,
            path_effects=[withStroke(linewidth=2.5, foreground=PAPER)],
            zorder=5,
        )
    return {f"{curve.name} (published)" if curve.published else curve.name: plotted}
