"""KL divergence per latent and layer, and maps of latent layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from disentwine.core.types import ACTIVE_NATS
from disentwine.errors import UsageError
from disentwine.figures.heat_maps import SHADES
from disentwine.figures.style import (
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

ROW_HEIGHT = 74
MAP_HEIGHT, PANEL = 900, 360
CLASSES = matplotlib.colormaps["tab10"]


def layer_activity(activity: Sequence[ArrayLike]) -> Figure:
    """KL divergence of each latent: a row for each layer, a cell for each latent.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, fig. 4 and 5.

    Arguments:
        activity: for each layer, from the image up, the mean KL divergence of its latents in nats.

    >>> figure = layer_activity([[3.0, 0.001, 0.5], [0.2, 0.0]])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['layer 1', 'layer 2']
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['3.50 nats, 2 of 3 active', '0.20 nats, 1 of 2 active']
    """
    rows = [np.sort(np.asarray(layer, dtype=np.float64))[::-1] for layer in activity]
    if not rows or any(row.ndim != 1 or len(row) == 0 for row in rows):
        raise UsageError("a hierarchy has at least one layer, and each layer at least one latent")
    columns = max(map(len, rows))
    figure = new_figure(WIDTH, 150 + ROW_HEIGHT * len(rows), layout="constrained")
    axes = figure.subplots()
    scale = LogNorm(ACTIVE_NATS, max(10 * ACTIVE_NATS, *(row.max() for row in rows)))
    for i, row in enumerate(rows):
        mesh = axes.pcolormesh(
            np.arange(len(row) + 1),
            [i + 0.08, i + 0.92],
            row.clip(ACTIVE_NATS)[None],
            cmap=SHADES,
            norm=scale,
            edgecolors=HAIRLINE,
            linewidth=0.5,
        )
        active = int((row > ACTIVE_NATS).sum())
        text = f"{row.sum():.2f} nats, {active} of {len(row)} active"
        axes.text(columns * 1.02, i + 0.5, text, va="center", fontsize=SMALL, color=QUIET)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [f"layer {i + 1}" for i in range(len(rows))])
    axes.set_xlim(0, columns * 1.32)
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=LABEL, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(mesh, ax=axes, location="bottom", shrink=0.4, aspect=40, pad=0.04)
    bar.set_label("KL divergence per latent (nats)", fontsize=SMALL, color=QUIET)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=QUIET, color=QUIET)
    bar.outline.set_visible(False)
    return figure


def activity_over_training(
    activity: Mapping[str, ArrayLike],
    *,
    at: Mapping[str, ArrayLike],
    layers: Mapping[str, Sequence[int]],
    across: str = "epochs",
) -> Figure:
    """KL divergence of each latent over training: a panel for each model, a row for each latent.

    The layer next to the image is at the bottom. Within a layer, latents are sorted by their final KL
    divergence, the most informative at the bottom; lines separate the layers. White latents are
    inactive.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, fig. 4.

    Arguments:
        activity: for each model (times, latents) in nats.
        at: for each model the times, such as epochs, (times,).
        layers: for each model the layer of each latent, from 1.
        across: label of the horizontal axis.

    >>> figure = activity_over_training(
    ...     {"vae": [[0.1, 0.0], [2.0, 0.1]]}, at={"vae": [0, 10]}, layers={"vae": [1, 2]})
    >>> figure.axes[0].get_title(loc="left")
    'vae: 2 of 2 latents active'
    """
    tables = {name: np.asarray(table, dtype=np.float64) for name, table in activity.items()}
    if not tables or any(table.ndim != 2 for table in tables.values()):
        raise UsageError("give for each of at least one model a table (times, latents)")
    figure = new_figure(WIDTH, MAP_HEIGHT, layout="constrained")
    grid = figure.subplots(1, len(tables), squeeze=False)[0]
    most = max(table.max() for table in tables.values())
    scale = LogNorm(ACTIVE_NATS, max(10 * ACTIVE_NATS, most))
    for axes, (name, table) in zip(grid, tables.items(), strict=True):
        times, of = np.asarray(at[name], dtype=np.float64), np.asarray(layers[name])
        if table.shape != (len(times), len(of)):
            raise UsageError(
                f"{name}: {len(times)} times and {len(of)} latents do not fit activity {table.shape}"
            )
        order = np.lexsort((-table[-1], of))
        # A cell extends half way to the neighbouring times.
        middles = (times[1:] + times[:-1]) / 2
        edges = [times[0], *middles, times[-1]] if len(times) > 1 else [times[0], times[0] + 1]
        mesh = axes.pcolormesh(
            edges,
            np.arange(len(of) + 1),
            table[:, order].T.clip(ACTIVE_NATS),
            cmap=SHADES,
            norm=scale,
        )
        starts = np.flatnonzero(np.diff(of[order], prepend=0))
        axes.hlines(starts[1:], edges[0], edges[-1], color=INK, linewidth=0.8)
        ends = np.append(starts[1:], len(of))
        axes.set_yticks((starts + ends) / 2, [str(of[order][start]) for start in starts])
        active = int((table[-1] > ACTIVE_NATS).sum())
        title = f"{name}: {active} of {len(of)} latents active"
        axes.set_title(title, loc="left", fontsize=LABEL, color=INK, parse_math=False)
        axes.set_xlabel(across, fontsize=SMALL, color=QUIET)
        axes.tick_params(length=0, labelsize=SMALL, labelcolor=QUIET)
        for spine in axes.spines.values():
            spine.set(color=HAIRLINE, linewidth=0.8)
    grid[0].set_ylabel("layer", fontsize=SMALL, color=QUIET)
    bar = figure.colorbar(mesh, ax=list(grid), location="bottom", shrink=0.3, aspect=40, pad=0.02)
    bar.set_label("KL divergence per latent (nats)", fontsize=SMALL, color=QUIET)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=QUIET, color=QUIET)
    bar.outline.set_visible(False)
    return figure


def layer_maps(
    points: Mapping[str, Sequence[ArrayLike]], classes: ArrayLike, *, names: Sequence[str]
) -> Figure:
    """Two-dimensional maps of images, coloured by class: a row for each model, a panel for each layer.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, fig. 6.

    Arguments:
        points: for each model and each of its layers, from the image up, (n, 2), such as the first two
            principal components of the latents.
        classes: (n,) class of each image, from 0.
        names: of the classes.

    >>> flat = np.zeros((4, 2))
    >>> figure = layer_maps({"vae": [flat, flat]}, [0, 1, 0, 1], names=["a", "b"])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['layer 1', 'layer 2']
    """
    columns = max((len(layers) for layers in points.values()), default=0)
    if columns == 0:
        raise UsageError("give at least one model with at least one layer")
    of = np.asarray(classes, dtype=np.int64)
    figure = new_figure(WIDTH, 90 + PANEL * len(points), layout="constrained")
    grid = figure.subplots(len(points), columns, squeeze=False)
    for (model, layers), row in zip(points.items(), grid, strict=True):
        first = model == next(iter(points))
        for i, axes in enumerate(row):
            axes.set(xticks=[], yticks=[], facecolor=PAPER)
            for spine in axes.spines.values():
                spine.set(color=HAIRLINE, linewidth=0.8)
            if i >= len(layers):
                axes.set_visible(False)
                continue
            table = np.asarray(layers[i], dtype=np.float64)
            colours = CLASSES(of % CLASSES.N)
            axes.scatter(table[:, 0], table[:, 1], c=colours, s=3, linewidths=0, rasterized=True)
            if first:
                axes.set_title(f"layer {i + 1}", loc="left", fontsize=TITLE, color=INK)
        row[0].set_ylabel(model, fontsize=LABEL, color=INK, parse_math=False)
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=5, color=CLASSES(i % CLASSES.N))
        for i in range(len(names))
    ]
    figure.legend(
        handles=handles,
        labels=list(names),
        loc="outside lower center",
        ncols=max(1, min(len(names), 12)),
        frameon=False,
        fontsize=SMALL,
        labelcolor=INK,
    )
    return figure
