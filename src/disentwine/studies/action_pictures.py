"""The pictures of the study `ctvae`: repeated interventions, what actions touch, and confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.contracts.capabilities import Transits
from disentwine.figures.actions import confusion_matrix
from disentwine.report.action_figures import graphs_of, repeated_figure
from disentwine.studies.pictures import Picture, Pictures, drawn_or_kept, kept
from disentwine.studies.trial import Outcome
from disentwine.training.run import Run

REPEATS = 5


def repeated_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """A test image under each action, once to five times (the paper's Fig. 5)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        caption = f"Each action once to {REPEATS} times, beside the real images"
        picture = f"{caption}: {name}", folder / f"repeated-{name}.png"
        drawn += drawn_or_kept([picture], {name: outcome}, runs, partial(_draw_repeated, picture))
    return drawn


def _draw_repeated(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    (run,) = opened.values()
    model: Any = run.model
    if not isinstance(model, Transits):
        return []
    figure = repeated_figure(model, run.dataset, run.dataset.split["test"], times=REPEATS)
    figures.save_figure(figure, picture[1])
    return [picture]


def graph_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """What each action touches and which nodes depend on which (the paper's Fig. 6)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        caption = f"What each action touches, and what depends on what: {name}"
        picture = caption, folder / f"graphs-{name}.png"
        drawn += drawn_or_kept([picture], {name: outcome}, runs, partial(_draw_graphs, picture))
    return drawn


def _draw_graphs(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    (run,) = opened.values()
    model: Any = run.model
    test = run.dataset.split["test"]
    images = run.dataset.images[test[np.linspace(0, len(test) - 1, 64).astype(np.int64)]]
    figures.save_figure(graphs_of(model, images), picture[1])
    return [picture]


def confusion_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """Which actions are taken for which."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        picture = f"Which action is taken for which: {name}", folder / f"confusion-{name}.png"
        score = next(s for s in outcome.scores if s["name"] == "action-accuracy")
        details = score["details"]
        if "confusion" in details:
            figure = confusion_matrix(details["confusion"], details["names"])
            drawn.append((picture[0], figures.save_figure(figure, picture[1])))
        else:  # of the first trials only their rows were recorded
            drawn += kept([picture])
    return drawn


def _shown(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """The first seed of each data set, without variants and baselines."""
    found: dict[str, Outcome] = {}
    for outcome in outcomes:
        if not outcome.trial.note and not outcome.trial.baseline:
            found.setdefault(outcome.trial.data, outcome)
    return found
