"""Adjacency matrix over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from disentwine.errors import UsageError
from disentwine.figures.heat_maps import heat_map
from disentwine.figures.style import (
    BLUE,
    INK,
    LABEL,
    ORANGE,
    QUIET,
    SMALL,
    TITLE,
    WIDTH,
    new_figure,
    tidy,
)

SHOWN = 4


def adjacency_over_training(
    steps: Sequence[int],
    adjacency: ArrayLike,
    *,
    names: Sequence[str],
    truth: ArrayLike | None = None,
    unit: str = "step",
) -> Figure:
    """Adjacency matrix A as heat maps at a few steps, and a line for each entry over all steps.

    As in Figure 5 of CausalVAE (M. Yang et al., 2021). Heat maps show absolute values; rows are causes,
    columns are effects.

    Arguments:
        steps: (m,) recorded steps.
        adjacency: (m, k, k) weights [cause, effect] at these steps.
        names: (k,) of the concepts.
        truth: (k, k) nonzero for true edges; entries that are not true edges are then orange.
        unit: label of the steps.

    >>> from disentwine.causal import discover_notears
    >>> light, noise = np.random.default_rng(0).normal(size=(2, 500))
    >>> path = []
    >>> labels = np.stack([light, light + noise], axis=1)
    >>> graph = discover_notears(labels, ("light", "shadow"), on_step=path.append)
    >>> figure = adjacency_over_training(range(len(path)), path, names=graph.names)
    >>> figure.axes[0].get_title(loc="left"), figure.axes[-1].get_title(loc="left")
    ('step 0', 'every entry of A')
    """
    A = np.asarray(adjacency, dtype=np.float64)
    k = len(names)
    if A.shape != (len(steps), k, k) or 0 in A.shape:
        raise UsageError(f"{len(steps)} steps and {k} names do not fit {A.shape}")
    true = None if truth is None else np.asarray(truth) != 0
    shown = np.unique(np.linspace(0, len(steps) - 1, SHOWN).round().astype(int))
    maps = [(f"{unit} {steps[i]:,}", np.abs(A[i])) for i in shown]
    maps += [] if true is None else [("true", true.astype(np.float64))]
    figure = new_figure(WIDTH, 960, layout="constrained")
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=[1, 1.1])[:, 0]
    most = max(1.0, float(np.abs(A).max()))
    for i, (axes, (title, values)) in enumerate(
        zip(upper.subplots(1, len(maps), squeeze=False)[0], maps, strict=True)
    ):
        texts = [[f"{v:.2f}" if v >= 0.005 else "" for v in row] for row in values]
        heat_map(axes, values, texts=texts, most=most, rows=[] if i else names, columns=[])
        axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    _lines(lower.subplots(), steps, A, names, true, unit)
    return figure


def _lines(
    axes: Axes,
    steps: Sequence[int],
    A: NDArray[np.float64],
    names: Sequence[str],
    true: NDArray[np.bool_] | None,
    unit: str,
) -> None:
    tidy(axes)
    ends = []
    for i, j in np.argwhere(np.abs(A).max(axis=0) > 0):
        colour = BLUE if true is None or true[i, j] else ORANGE
        axes.plot(steps, A[:, i, j], color=colour, linewidth=1.6)
        ends.append((A[-1, i, j], f"{names[i]} → {names[j]}".replace("_", " "), colour))
    low, high = axes.get_ylim()
    ends = [end for end in sorted(ends) if abs(end[0]) > 0.03 * (high - low)]
    places = _apart([value for value, _, _ in ends], 0.075 * (high - low))
    for place, (value, name, colour) in zip(places, ends, strict=True):
        axes.annotate(
            name,
            (steps[-1], value),
            (1.012, place),
            textcoords=axes.get_yaxis_transform(),
            fontsize=SMALL,
            color=colour,
            va="center",
            parse_math=False,
        )
    axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel(unit, fontsize=LABEL, color=QUIET)
    axes.set_title("every entry of A", loc="left", fontsize=TITLE, color=INK)


def _apart(values: list[float], gap: float) -> list[float]:
    """Sorted values, moved apart so that neighbours have at least the distance `gap`.

    >>> _apart([0.0, 0.0, 5.0], 1.0)
    [-0.5, 0.5, 5.0]
    """
    groups: list[list[float]] = []
    for value in values:
        group = [value]
        while groups and _first(group, gap) - _last(groups[-1], gap) < gap:
            group = groups.pop() + group
        groups.append(group)
    return [_first(group, gap) + i * gap for group in groups for i in range(len(group))]


def _first(group: list[float], gap: float) -> float:
    return float(np.mean(group)) - gap * (len(group) - 1) / 2


def _last(group: list[float], gap: float) -> float:
    return float(np.mean(group)) + gap * (len(group) - 1) / 2
