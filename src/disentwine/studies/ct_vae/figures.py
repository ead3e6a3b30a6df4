"""The pictures of the study `ctvae`: repeated interventions, what actions touch, and confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.core.capabilities import AppliesActions
from disentwine.figures.actions import confusion_matrix
from disentwine.report.sections.actions import graphs_of, repeated_figure
from disentwine.runs.run import Run
from disentwine.studies.figures import Picture, Pictures, drawn_or_kept, kept
from disentwine.studies.trial import Outcome

REPEATS = 5


def repeated_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """A test image under each action, once to five times (the paper's Fig. 5)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes, runs).items():
        caption = f"Each action once to {REPEATS} times, beside the real images"
        picture = f"{caption}: {name}", folder / f"repeated-{name}.png"
        drawn += drawn_or_kept([picture], {name: outcome}, runs, partial(_draw_repeated, picture))
    return drawn


def _draw_repeated(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    (run,) = opened.values()
    model: Any = run.model
    if not isinstance(model, AppliesActions):
        return []
    figure = repeated_figure(model, run.dataset, run.dataset.split["test"], times=REPEATS)
    if figure is None:
        return []
    figures.save_figure(figure, picture[1])
    return [picture]


def graph_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """What each action touches and which nodes depend on which (the paper's Fig. 6)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes, runs).items():
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
    told = _shown([outcome for outcome in outcomes if "confusion" in _retrieval(outcome)])
    for name in _shown(outcomes):
        picture = f"Which action is taken for which: {name}", folder / f"confusion-{name}.png"
        if name in told:
            details = _retrieval(told[name])
            figure = confusion_matrix(details["confusion"], details["names"])
            drawn.append((picture[0], figures.save_figure(figure, picture[1])))
        else:  # of the first trials only their rows were recorded
            drawn += kept([picture])
    return drawn


def _retrieval(outcome: Outcome) -> Mapping[str, Any]:
    """What is told of the actions that were retrieved."""
    return next((s["details"] for s in outcome.scores if s["name"] == "action-accuracy"), {})


def _shown(outcomes: Sequence[Outcome], runs: Path | None = None) -> dict[str, Outcome]:
    """The first seed of each data set, without variants and baselines; where its run is gone, the first
    whose run is there."""
    plain = [o for o in outcomes if not o.trial.note and not o.trial.baseline]
    there = [o for o in plain if runs is not None and o.trial.finished_run(runs) is not None]
    found: dict[str, Outcome] = {}
    for outcome in (*there, *plain):
        found.setdefault(outcome.trial.data, outcome)
    return {name: found[name] for name in dict.fromkeys(o.trial.data for o in plain)}
