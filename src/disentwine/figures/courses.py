"""Curves of several models: what each scores as training goes on, or from layer to layer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from disentwine.errors import UsageError
from disentwine.figures.comparison import STYLES
from disentwine.figures.style import (
    HAIRLINE,
    INK,
    LABEL,
    PAPER,
    QUIET,
    TITLE,
    WIDTH,
    legend_above,
    new_figure,
    tidy,
)

HEIGHT = 720
MARKERS_APART = 0.03
"""How far, of a panel's diagonal: a long training has many points that are close together."""


@dataclass(frozen=True)
class Course:
    """What one model scores at several places.

    Arguments:
        name: of the model.
        at: where, such as minutes of training, one a point.
        scores: of each point, by name.
    """

    name: str
    at: ArrayLike
    scores: Mapping[str, ArrayLike]


def course_curves(
    courses: Sequence[Course],
    *,
    across: str,
    marks: Sequence[float] = (),
    logarithmic: bool = False,
    ticks: Sequence[float] = (),
    steep: Collection[str] = (),
) -> Figure:
    """A panel for each score, a curve for each model.

    Arguments:
        courses: of each model.
        across: what the horizontal axis is.
        marks: places on it to draw a line at.
        logarithmic: the horizontal axis, which leaves out what is not above 0.
        ticks: numbers to write on it; by default round ones.
        steep: scores that fall by orders of magnitude, whose own axis is logarithmic.

    >>> course = Course("vae", at=[1, 10, 30], scores={"SAP": [0.1, 0.2, 0.3]})
    >>> figure = course_curves([course], across="minutes", marks=[10], logarithmic=True)
    >>> figure.axes[0].get_xlabel()
    'minutes'
    """
    names = list(dict.fromkeys(name for course in courses for name in course.scores))
    if not names:
        raise UsageError("there are no scores to draw: give at least one course with one score")
    figure = new_figure(WIDTH, HEIGHT, layout="constrained")
    handles = {}
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        tidy(axes)
        axes.set_title(name, loc="left", fontsize=TITLE, color=INK, parse_math=False)
        axes.set_xlabel(across, fontsize=LABEL, color=QUIET, parse_math=False)
        for i, (course, (colour, marker)) in enumerate(zip(courses, cycle(STYLES), strict=False)):
            if name not in course.scores:
                continue
            x, y = (np.asarray(v, dtype=np.float64) for v in (course.at, course.scores[name]))
            if x.shape != y.shape:
                raise UsageError(f"{course.name}: {len(x)} places do not fit {len(y)} of {name}")
            shown = (x > 0) & np.isfinite(y) if logarithmic else np.isfinite(y)
            style = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.6}
            style["markevery"] = MARKERS_APART
            again = i // len(STYLES)  # colours come again
            if again:
                style |= {"linestyle": "--" if again == 1 else ":", "markerfacecolor": PAPER}
            (handles[course.name],) = axes.plot(x[shown], y[shown], **style)
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
