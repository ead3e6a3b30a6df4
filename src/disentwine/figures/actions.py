"""Figures of actions: confusion matrix, masks and graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.heat_maps import SHADES, heat_map
from disentwine.figures.style import INK, QUIET, SMALL, TITLE, new_figure

CELL = 74


def confusion_matrix(counts: ArrayLike, names: Sequence[str], *, title: str = "") -> Figure:
    """Confusion matrix of actions, in percent of each row.

    Arguments:
        counts: (actions, actions), a row per true action and a column per retrieved action.
        names: of the actions.
        title: of the figure.

    >>> figure = confusion_matrix([[9, 1], [0, 5]], ["+x", "-x"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['90', '10', '', '100']
    """
    values = np.asarray(counts, dtype=np.float64)
    if values.shape != (len(names), len(names)):
        raise UsageError(f"{len(names)} names do not fit counts of shape {values.shape}")
    shares = values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    texts = [[f"{100 * v:.0f}" if v >= 0.005 else "" for v in row] for row in shares]
    labels = [name.replace("_", " ") for name in names]
    figure = new_figure(len(names) * CELL + 360, len(names) * CELL + 300, layout="constrained")
    axes = figure.subplots()
    heat_map(axes, shares, texts=texts, most=1.0, rows=labels, columns=labels)
    axes.tick_params(axis="x", labelrotation=90)
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    axes.set_xlabel("retrieved (% of a row)", fontsize=SMALL, color=QUIET)
    axes.set_ylabel("true action", fontsize=SMALL, color=QUIET)
    return figure


def action_graphs(masks: ArrayLike, edges: ArrayLike, names: Sequence[str]) -> Figure:
    """The mask of each action on the grid of positions, and its edges between nodes.

    Arguments:
        masks: (actions, rows, columns) probability that an action affects a position.
        edges: (actions, nodes, nodes) probability that a node (row) depends on another (column).
        names: of the actions.

    >>> figure = action_graphs(np.zeros((2, 4, 4)), np.zeros((2, 16, 16)), ["+x", "-x"])
    >>> len(figure.axes)
    4
    """
    mask, edge = np.asarray(masks, dtype=np.float64), np.asarray(edges, dtype=np.float64)
    if len(mask) != len(names) or len(edge) != len(names):
        raise UsageError(f"{len(names)} names, {len(mask)} masks and {len(edge)} graphs")
    figure = new_figure(len(names) * 190 + 160, 480, layout="constrained")
    grid = figure.subplots(2, len(names), squeeze=False)
    for column, name in enumerate(names):
        for axes, image in zip(grid[:, column], (mask[column], edge[column]), strict=True):
            axes.imshow(image, cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
        grid[0, column].set_title(name.replace("_", " "), fontsize=SMALL, color=INK)
    for axes, label in zip(grid[:, 0], ("mask", "edges"), strict=True):
        axes.set_ylabel(label, fontsize=SMALL, color=QUIET)
    return figure
