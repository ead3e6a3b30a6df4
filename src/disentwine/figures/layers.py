"""Figures of hierarchies: which units of which layer carry something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.matrices import SHADES
from disentwine.figures.style import HAIRLINE, INK, LABEL, QUIET, SMALL, WIDTH, new_figure

ACTIVE = 0.01
"""Nats from which a unit counts as active."""

ROW_HEIGHT = 74


def layer_activity(activity: Sequence[ArrayLike]) -> Figure:
    """A row of cells for each layer, a cell for each unit: the darker, the more it carries.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, fig. 4 and 5.

    Arguments:
        activity: for each layer, from the image up, the mean KL divergence of its units in nats.

    >>> figure = layer_activity([[3.0, 0.001, 0.5], [0.2, 0.0]])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['layer 1', 'layer 2']
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['3.50 nats, 2 of 3 active', '0.20 nats, 1 of 2 active']
    """
    rows = [np.sort(np.asarray(units, dtype=np.float64))[::-1] for units in activity]
    if not rows or any(row.ndim != 1 or len(row) == 0 for row in rows):
        raise UsageError("a hierarchy has at least one layer, and each layer at least one unit")
    columns = max(map(len, rows))
    figure = new_figure(WIDTH, 150 + ROW_HEIGHT * len(rows), layout="constrained")
    axes = figure.subplots()
    scale = LogNorm(ACTIVE, max(10 * ACTIVE, *(row.max() for row in rows)))
    for i, row in enumerate(rows):
        picture = axes.pcolormesh(
            np.arange(len(row) + 1),
            [i + 0.08, i + 0.92],
            row.clip(ACTIVE)[None],
            cmap=SHADES,
            norm=scale,
            edgecolors=HAIRLINE,
            linewidth=0.5,
        )
        active = int((row > ACTIVE).sum())
        text = f"{row.sum():.2f} nats, {active} of {len(row)} active"
        axes.text(columns * 1.02, i + 0.5, text, va="center", fontsize=SMALL, color=QUIET)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [f"layer {i + 1}" for i in range(len(rows))])
    axes.set_xlim(0, columns * 1.32)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=LABEL, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(picture, ax=axes, location="bottom", shrink=0.4, aspect=40, pad=0.04)
    bar.set_label("KL divergence of a unit (nats)", fontsize=SMALL, color=QUIET)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=QUIET, color=QUIET)
    bar.outline.set_visible(False)
    return figure
