"""The pictures that studies share: scores beside the paper's, systems beside the truth."""

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
from disentwine.report.text import display_values, in_words, pad_rows
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
    """Pictures of trained models; where any of their runs is gone, those that were drawn before.

    Arguments:
        pictures: all that may be drawn.
        shown: the outcomes whose models they show.
        runs: the folder of all run folders.
        draw: draws pictures of the runs, and says which.
    """
    found = {name: result.trial.finished_run(runs) for name, result in shown.items()}
    loaded = {name: run for name, run in found.items() if run is not None}
    if len(loaded) == len(shown):
        return draw(loaded)
    before = existing(figure_files)
    if len(before) < len(figure_files):
        names = ", ".join(path.name for _, path in figure_files if not path.is_file())
        warn(f"not drawn, since runs of them are no longer in {runs}: {names}")
    return before


def existing(figure_files: FigureFiles) -> FigureFiles:
    """Those that were drawn before."""
    return [(caption, path) for caption, path in figure_files if path.is_file()]


def score_figures(
    results: Sequence[TrialResult], published: Published, metrics: Sequence[str], folder: Path
) -> FigureFiles:
    """For each data set the metrics of every system, on as many images as were measured."""
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
    """One test image under interventions, a row for the simulator and one for every system, or for every
    note of it."""
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
        labels.append(f"do({name.replace('_', ' ')}), truth\n{in_words(factor, values)}")
        for system, model in models.items():
            rows.append(model.do(dataset.images[again], {name: values}))
            labels.append(system)
    figures.save_figure(figures.labelled_rows(pad_rows(rows), labels), figure_file[1])
    return [figure_file]


def effect_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """What interventions should move and do move, for the first seed of every system."""
    written: FigureFiles = []
    for (data, system), result in first_of_each(results).items():
        leak = next((score for score in result.scores if score["name"] == "effect-leak"), None)
        if leak is not None:
            name = f"effects-{data}-{system.replace('/', '-')}.png"
            path = figures.save_figure(effects_of(leak["details"]), folder / name)
            written.append((f"Effects of interventions: {result.trial.title} on {data}", path))
    return written


def graph_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """For each data set the graph that was learnt, beside the true one."""
    written: dict[str, FigureFiles] = {}
    for (data, system), result in first_of_each(results).items():
        if data not in written:
            figure_file = f"The graph of {system} on {data}", folder / f"graph-{data}.png"
            draw = partial(_draw_graph, figure_file)
            found = draw_or_keep([figure_file], {system: result}, runs, draw)
            # One whose run is gone may be the one that was drawn: no other takes its place.
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
    """The first outcome of each data set and system, or of each note of a system."""
    found: dict[tuple[str, str], TrialResult] = {}
    for result in results:
        trial = result.trial
        system = _name(trial.system, trial.note) if notes else trial.system
        found.setdefault((trial.data, system), result)
    return found


def _name(system: str, note: str) -> str:
    return f"{system}\n{note}" if note else system
