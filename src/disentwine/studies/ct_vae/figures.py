"""Figures of the study `ctvae`: rollouts, action graphs and confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.core.capabilities import AppliesActions
from disentwine.figures.actions import confusion_matrix
from disentwine.report.sections.actions import action_graphs_figure, rollout_figure
from disentwine.runs.run import Run
from disentwine.studies.figures import FigureFile, FigureFiles, draw_or_keep, existing
from disentwine.studies.trial import TrialResult

REPEATS = 5


def rollout_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """A test image after one to five repetitions of each action (the paper's Fig. 5)."""
    written: FigureFiles = []
    for name, result in _shown(results, runs).items():
        caption = f"Rollouts of 1 to {REPEATS} actions, beside the real images"
        figure_file = f"{caption}: {name}", folder / f"repeated-{name}.png"
        written += draw_or_keep(
            [figure_file], {name: result}, runs, partial(_draw_rollouts, figure_file)
        )
    return written


def _draw_rollouts(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    (run,) = loaded.values()
    model: Any = run.model
    if not isinstance(model, AppliesActions):
        return []
    figure = rollout_figure(model, run.dataset, run.dataset.split["test"], times=REPEATS)
    if figure is None:
        return []
    figures.save_figure(figure, figure_file[1])
    return [figure_file]


def graph_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Masks and graphs of each action (the paper's Fig. 6)."""
    written: FigureFiles = []
    for name, result in _shown(results, runs).items():
        caption = f"Masks and graphs of actions: {name}"
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
    figures.save_figure(action_graphs_figure(model, images), figure_file[1])
    return [figure_file]


def confusion_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """Confusion matrices of action retrieval."""
    written: FigureFiles = []
    recorded = _shown([result for result in results if "confusion" in _retrieval(result)])
    for name in _shown(results):
        figure_file = f"Confusion matrix of actions: {name}", folder / f"confusion-{name}.png"
        if name in recorded:
            details = _retrieval(recorded[name])
            figure = confusion_matrix(details["confusion"], details["names"])
            written.append((figure_file[0], figures.save_figure(figure, figure_file[1])))
        else:  # the first trials recorded no details
            written += existing([figure_file])
    return written


def _retrieval(result: TrialResult) -> Mapping[str, Any]:
    """The details of action retrieval."""
    return next((s["details"] for s in result.scores if s["name"] == "action-accuracy"), {})


def _shown(results: Sequence[TrialResult], runs: Path | None = None) -> dict[str, TrialResult]:
    """The first seed of each data set, without variants and baselines; if its run is deleted, the first
    seed with a run."""
    plain = [o for o in results if not o.trial.note and not o.trial.baseline]
    there = [o for o in plain if runs is not None and o.trial.finished_run(runs) is not None]
    found: dict[str, TrialResult] = {}
    for result in (*there, *plain):
        found.setdefault(result.trial.data, result)
    return {name: found[name] for name in dict.fromkeys(o.trial.data for o in plain)}
