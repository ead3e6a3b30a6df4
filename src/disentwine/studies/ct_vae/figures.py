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
from disentwine.studies.figures import FigureFile, FigureFiles, draw_or_keep, existing
from disentwine.studies.trial import TrialResult

REPEATS = 5


def repeated_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """A test image under each action, once to five times (the paper's Fig. 5)."""
    written: FigureFiles = []
    for name, result in _shown(results, runs).items():
        caption = f"Each action once to {REPEATS} times, beside the real images"
        figure_file = f"{caption}: {name}", folder / f"repeated-{name}.png"
        written += draw_or_keep(
            [figure_file], {name: result}, runs, partial(_draw_repeated, figure_file)
        )
    return written


def _draw_repeated(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    (run,) = loaded.values()
    model: Any = run.model
    if not isinstance(model, AppliesActions):
        return []
    figure = repeated_figure(model, run.dataset, run.dataset.split["test"], times=REPEATS)
    if figure is None:
        return []
    figures.save_figure(figure, figure_file[1])
    return [figure_file]


def graph_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """What each action touches and which nodes depend on which (the paper's Fig. 6)."""
    written: FigureFiles = []
    for name, result in _shown(results, runs).items():
        caption = f"What each action touches, and what depends on what: {name}"
        figure_file = caption, folder / f"graphs-{name}.png"
        written += draw_or_keep(
            [figure_file], {name: result}, runs, partial(_draw_graphs, figure_file)
        )
    return written


def _draw_graphs(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    (run,) = loaded.values()
    model: Any = run.model
    test = run.dataset.split["test"]
    images = run.dataset.images[test[np.linspace(0, len(test) - 1, 64).astype(np.int64)]]
    figures.save_figure(graphs_of(model, images), figure_file[1])
    return [figure_file]


def confusion_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """Which actions are taken for which."""
    written: FigureFiles = []
    told = _shown([result for result in results if "confusion" in _retrieval(result)])
    for name in _shown(results):
        figure_file = f"Which action is taken for which: {name}", folder / f"confusion-{name}.png"
        if name in told:
            details = _retrieval(told[name])
            figure = confusion_matrix(details["confusion"], details["names"])
            written.append((figure_file[0], figures.save_figure(figure, figure_file[1])))
        else:  # of the first trials only their rows were recorded
            written += existing([figure_file])
    return written


def _retrieval(result: TrialResult) -> Mapping[str, Any]:
    """What is told of the actions that were retrieved."""
    return next((s["details"] for s in result.scores if s["name"] == "action-accuracy"), {})


def _shown(results: Sequence[TrialResult], runs: Path | None = None) -> dict[str, TrialResult]:
    """The first seed of each data set, without variants and baselines; where its run is gone, the first
    whose run is there."""
    plain = [o for o in results if not o.trial.note and not o.trial.baseline]
    there = [o for o in plain if runs is not None and o.trial.finished_run(runs) is not None]
    found: dict[str, TrialResult] = {}
    for result in (*there, *plain):
        found.setdefault(result.trial.data, result)
    return {name: found[name] for name in dict.fromkeys(o.trial.data for o in plain)}
