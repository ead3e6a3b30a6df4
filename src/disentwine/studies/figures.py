"""Figures of several studies: scores, interventions, effects, graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from disentwine import figures
from disentwine.core.capabilities import Intervenes
from disentwine.core.dataset import Simulates
from disentwine.data.simulation import rerender
from disentwine.errors import warn
from disentwine.figures.bars import grouped_bars
from disentwine.report.sections.latents import effects_of
from disentwine.report.text import display_values, pad_rows, value_labels
from disentwine.runs.run import Run
from disentwine.studies.study import Published, result_rows
from disentwine.studies.trial import TrialResult

VALUES = 7
FigureFile = tuple[str, Path]
"""Caption and file."""

FigureFiles = list[FigureFile]
Name = TypeVar("Name")


def draw_or_keep(
    figure_files: FigureFiles,
    shown: Mapping[Name, TrialResult],
    runs: Path,
    draw: Callable[[dict[Name, Run]], FigureFiles],
) -> FigureFiles:
    """Figures of trained models; the existing files if any of their runs is gone.

    Arguments:
        figure_files: all possible figures.
        shown: the results whose models they show.
        runs: the folder of all run folders.
        draw: draws figures of the runs and returns their captions and files.
    """
    found = {name: result.trial.finished_run(runs) for name, result in shown.items()}
    loaded = {name: run for name, run in found.items() if run is not None}
    if len(loaded) == len(shown):
        return draw(loaded)
    before = existing(figure_files)
    if len(before) < len(figure_files):
        names = ", ".join(path.name for _, path in figure_files if not path.is_file())
        warn(f"figures not drawn, since their runs are not in {runs}: {names}")
    return before


def existing(figure_files: FigureFiles) -> FigureFiles:
    """The figures whose files exist."""
    return [(caption, path) for caption, path in figure_files if path.is_file()]


def score_figures(
    results: Sequence[TrialResult], published: Published, metrics: Sequence[str], folder: Path
) -> FigureFiles:
    """Metrics of every system on each data set, on the largest number of images."""
    rows = result_rows(results, published)
    written: FigureFiles = []
    for data in dict.fromkeys(row["data"] for row in rows):
        here = [row for row in rows if row["data"] == data and row["metric"] in metrics]
        found = {
            (_name(row["system"], row["note"]), row["metric"]): row
            for row in sorted(here, key=lambda row: row["n"])
        }
        systems = list(dict.fromkeys(_name(row["system"], row["note"]) for row in here))

        def table(field: str, systems: list[str] = systems, found: dict = found) -> np.ndarray:  # type: ignore[type-arg]
            cells = [[found.get((s, m), {}).get(field) for m in metrics] for s in systems]
            return np.array(cells, dtype=float)

        figure = grouped_bars(
            table("value"),
            spreads=table("spread"),
            published=table("paper"),
            groups=systems,
            bars=[metric.upper() for metric in metrics],
            title=f"{data}, test split",
        )
        names = " and ".join(metric.upper() for metric in metrics)
        path = figures.save_figure(figure, folder / f"{'-'.join(metrics)}-{data}.png")
        written.append((f"{names} on {data}", path))
    return written


def intervention_figures(
    results: Sequence[TrialResult], runs: Path, folder: Path, *, notes: bool = False
) -> FigureFiles:
    """One test image under interventions: a row for the simulator and for every system, or every note."""
    written: FigureFiles = []
    first = first_of_each(results, notes=notes)
    for data in dict.fromkeys(result.trial.data for result in results):
        shown = {system: result for (name, system), result in first.items() if name == data}
        figure_file = f"Interventions on {data}", folder / f"interventions-{data}.png"
        written += draw_or_keep(
            [figure_file], shown, runs, partial(_draw_interventions, figure_file)
        )
    return written


def _draw_interventions(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    models = {s: run.model for s, run in loaded.items() if isinstance(run.model, Intervenes)}
    dataset = next(iter(loaded.values())).dataset
    if not models or not isinstance(dataset, Simulates):
        return []
    test = dataset.split["test"]
    index = test[len(test) // 2]
    rows, labels = [], []
    for factor, column in zip(dataset.spec, dataset.factors.T, strict=True):
        name, values = factor.name, display_values(factor, column, most=VALUES)
        again = np.repeat(index, len(values))
        rows.append(rerender(dataset, again, {name: values}).images)
        labels.append(f"do({name.replace('_', ' ')}), ground truth\n{value_labels(factor, values)}")
        for system, model in models.items():
            rows.append(model.do(dataset.images[again], {name: values}))
            labels.append(system)
    figures.save_figure(figures.labelled_rows(pad_rows(rows), labels), figure_file[1])
    return [figure_file]


def effect_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """Expected and actual effects of interventions, for the first seed of every system."""
    written: FigureFiles = []
    for (data, system), result in first_of_each(results).items():
        off_target = next(
            (score for score in result.scores if score["name"] == "off-target-effect"), None
        )
        if off_target is not None:
            name = f"effects-{data}-{system.replace('/', '-')}.png"
            path = figures.save_figure(effects_of(off_target["details"]), folder / name)
            written.append((f"Effects of interventions: {result.trial.title} on {data}", path))
    return written


def graph_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """The learnt graph and the true one, for each data set."""
    written: dict[str, FigureFiles] = {}
    for (data, system), result in first_of_each(results).items():
        if data not in written:
            figure_file = f"The graph of {system} on {data}", folder / f"graph-{data}.png"
            draw = partial(_draw_graph, figure_file)
            found = draw_or_keep([figure_file], {system: result}, runs, draw)
            # An existing figure may be of the run that is gone: no other run replaces it.
            if found or result.trial.finished_run(runs) is None:
                written[data] = found
    return [figure_file for found in written.values() for figure_file in found]


def _draw_graph(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    (run,) = loaded.values()
    model = run.model
    if not isinstance(model, Intervenes) or not model.graph.edges:
        return []
    figures.save_figure(figures.graph_figure(model.graph, run.dataset.graph), figure_file[1])
    return [figure_file]


def first_of_each(
    results: Sequence[TrialResult], *, notes: bool = False
) -> dict[tuple[str, str], TrialResult]:
    """The first result of each data set and system, or of each note of a system."""
    found: dict[tuple[str, str], TrialResult] = {}
    for result in results:
        trial = result.trial
        system = _name(trial.system, trial.note) if notes else trial.system
        found.setdefault((trial.data, system), result)
    return found


def _name(system: str, note: str) -> str:
    return f"{system}\n{note}" if note else system
