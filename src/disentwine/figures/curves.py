"""Loss curves, score curves of several models, and activity of latents."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.comparison import SERIES_STYLES
from disentwine.figures.style import (
    BLUE,
    HAIRLINE,
    INK,
    LABEL,
    ORANGE,
    PAPER,
    QUIET,
    SMALL,
    TITLE,
    WIDTH,
    legend_above,
    new_figure,
    tidy,
)

Record = Mapping[str, Any]

DECADES_FOR_LOG = 2

STYLES: dict[str, dict[str, Any]] = {
    "train": {"color": BLUE, "linewidth": 1.6},
    "validation": {"color": ORANGE, "linewidth": 1.2, "marker": "o", "markersize": 4.5},
}


def loss_curves(records: Sequence[Record]) -> Figure:
    """Total loss and loss terms over training, each in a panel.

    The loss of step 0, which is much larger than all others, is left out if there are later ones.

    Arguments:
        records: such as {"kind": "train" or "validation", "step": 50, "loss": 81.2, "kl": 3.1};
            records of other kinds have no losses and are ignored.

    >>> figure = loss_curves([{"kind": "validation", "step": s, "loss": 9.0 - s} for s in range(3)])
    >>> figure.axes[0].get_title(loc="left")
    'total loss'
    """
    records = [r for r in records if r["kind"] in STYLES]
    names = list(dict.fromkeys(n for r in records for n in r if n not in ("kind", "step")))
    if not names:
        raise UsageError("there are no records of losses yet")
    best = best_step(records)
    records = [r for r in records if r["step"] > 0] or records
    columns = min(len(names), 3)
    rows = -(-len(names) // columns)
    figure = new_figure(WIDTH, 60 + 500 * rows, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        _panel(axes, records, name)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_visible(False)
    for axes in list(grid.flat)[: len(names)] if best is not None else ():
        line = axes.axvline(best, color=INK, linewidth=0.9, linestyle=(0, (2, 3)))
        line.set_label(f"best at step {best:,}")
    handles = {h.get_label(): h for axes in grid.flat for h in axes.get_lines()}
    legend_above(figure, handles)
    return figure


def best_step(records: Sequence[Record]) -> int | None:
    """The step with the least validation loss; None without validation.

    None also for adversarial training, where losses of different steps are not comparable. Losses with
    other terms than the last one, as in pre-training, are ignored.

    >>> best_step([{"kind": "validation", "step": 5, "loss": 1.0}])
    5
    """
    validations = [r for r in records if r["kind"] == "validation"]
    scores = [
        (float(r["loss"]), int(r["step"]))
        for r in validations
        if r.keys() == validations[-1].keys()
        and math.isfinite(r.get("loss", math.nan))
        and "discriminator_loss" not in r
    ]
    return min(scores)[1] if scores else None


def latent_activity(
    activity: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    active: Sequence[bool] | None = None,
    measure: str = "KL divergence from the prior (nats)",
) -> Figure:
    """Bars of the activity of each latent, the most informative first.

    Arguments:
        activity: (d,), such as the mean KL divergence of each latent.
        labels: names of the latents; z0, z1, ... when omitted.
        active: which latents are active; the others are faint.
        measure: label of the values.

    >>> axes = latent_activity([0.1, 3.0]).axes[0]
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['z1', 'z0']
    """
    values = np.asarray(activity, dtype=np.float64)
    order = np.argsort(-values, kind="stable")
    names = labels or [f"z{i}" for i in range(len(values))]
    strong = active if active is not None else [True] * len(values)
    figure = new_figure(WIDTH, 130 + 44 * len(values), layout="constrained")
    axes = figure.add_subplot()
    tidy(axes)
    axes.grid(visible=False)
    bars = axes.barh(
        range(len(values)),
        values[order],
        height=0.66,
        color=[BLUE if strong[i] else HAIRLINE for i in order],
    )
    axes.bar_label(bars, fmt="%.3g", padding=6, fontsize=SMALL, color=QUIET)
    axes.set_yticks(range(len(values)), [names[i] for i in order])
    axes.tick_params(axis="y", labelcolor=INK, length=0, labelsize=SMALL)
    axes.invert_yaxis()
    axes.margins(x=0.08, y=0.02)
    axes.set_xlabel(measure, fontsize=LABEL, color=QUIET)
    axes.spines["left"].set_visible(False)
    return figure


def _panel(axes: Axes, records: Sequence[Record], name: str) -> None:
    tidy(axes)
    axes.set_title(
        "total loss" if name == "loss" else name.replace("_", " "),
        loc="left",
        fontsize=TITLE,
        color=INK,
        parse_math=False,
    )
    everything: list[float] = []
    for kind, style in STYLES.items():
        points = [(r["step"], r[name]) for r in records if r["kind"] == kind and name in r]
        points = [(step, value) for step, value in points if math.isfinite(value)]
        if points:
            steps, values = zip(*points, strict=True)
            alone = {"marker": "o", "markersize": 4.5} if len(points) == 1 else {}
            axes.plot(steps, values, label=kind, **(style | alone))
            everything += values
    if everything and min(everything) > 0:
        decades = math.log10(max(everything) / min(everything))
        if decades > DECADES_FOR_LOG:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(numticks=6))
            axes.yaxis.set_minor_formatter(NullFormatter())
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.set_xlabel("step", fontsize=SMALL, color=QUIET)


HEIGHT = 720

MARKERS_APART = 0.03
"""Least distance of markers relative to the diagonal of a panel: long trainings have many points."""


@dataclass(frozen=True)
class ScoreCurve:
    """Scores of one model over a variable such as the training time.

    Arguments:
        name: of the model.
        at: value of the variable for each point, such as minutes of training.
        scores: of each point, by name.
    """

    name: str
    at: ArrayLike
    scores: Mapping[str, ArrayLike]


def score_curves(
    curves: Sequence[ScoreCurve],
    *,
    across: str,
    marks: Sequence[float] = (),
    logarithmic: bool = False,
    ticks: Sequence[float] = (),
    steep: Collection[str] = (),
) -> Figure:
    """A panel for each score, a curve for each model.

    Arguments:
        curves: one for each model.
        across: label of the horizontal axis.
        marks: values on it to mark by a vertical line.
        logarithmic: whether it is logarithmic; points that are not above 0 are left out.
        ticks: its ticks; by default round numbers.
        steep: scores with a logarithmic axis, as they fall by orders of magnitude.

    >>> curve = ScoreCurve("vae", at=[1, 10, 30], scores={"SAP": [0.1, 0.2, 0.3]})
    >>> figure = score_curves([curve], across="minutes", marks=[10], logarithmic=True)
    >>> figure.axes[0].get_xlabel()
    'minutes'
    """
    names = list(dict.fromkeys(name for curve in curves for name in curve.scores))
    if not names:
        raise UsageError("there are no scores to plot: give at least one curve with one score")
    figure = new_figure(WIDTH, HEIGHT, layout="constrained")
    handles = {}
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        tidy(axes)
        axes.set_title(name, loc="left", fontsize=TITLE, color=INK, parse_math=False)
        axes.set_xlabel(across, fontsize=LABEL, color=QUIET, parse_math=False)
        for i, (curve, (colour, marker)) in enumerate(
            zip(curves, cycle(SERIES_STYLES), strict=False)
        ):
            if name not in curve.scores:
                continue
            x, y = (np.asarray(v, dtype=np.float64) for v in (curve.at, curve.scores[name]))
            if x.shape != y.shape:
                raise UsageError(
                    f"{curve.name}: {len(x)} values of `at` do not fit {len(y)} of {name}"
                )
            shown = (x > 0) & np.isfinite(y) if logarithmic else np.isfinite(y)
            style = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.6}
            style["markevery"] = MARKERS_APART
            again = i // len(SERIES_STYLES)  # colours repeat
            if again:
                style |= {"linestyle": "--" if again == 1 else ":", "markerfacecolor": PAPER}
            (handles[curve.name],) = axes.plot(x[shown], y[shown], **style)
        if name in steep:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        for mark in marks:
            axes.axvline(mark, color=HAIRLINE, linewidth=0.9, linestyle=(0, (2, 3)), zorder=0)
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        if ticks:
            axes.set_xticks(list(ticks), [f"{tick:,g}" for tick in ticks])
            axes.set_xticks([], minor=True)
    legend_above(figure, handles)
    return figure
