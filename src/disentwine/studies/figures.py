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
from disentwine.studies.trial import Outcome

VALUES = 7
Picture = tuple[str, Path]
"""Caption and file."""

Pictures = list[Picture]
Name = TypeVar("Name")


def drawn_or_kept(
    pictures: Pictures,
    shown: Mapping[Name, Outcome],
    runs: Path,
    draw: Callable[[dict[Name, Run]], Pictures],
) -> Pictures:
    """Pictures of trained models; where any of their runs is gone, those that were drawn before.

    Arguments:
        pictures: all that may be drawn.
        shown: the outcomes whose models they show.
        runs: the folder of all run folders.
        draw: draws pictures of the runs, and says which.
    """
    found = {name: outcome.trial.finished_run(runs) for name, outcome in shown.items()}
    opened = {name: run for name, run in found.items() if run is not None}
    if len(opened) == len(shown):
        return draw(opened)
    before = kept(pictures)
    if len(before) < len(pictures):
        names = ", ".join(path.name for _, path in pictures if not path.is_file())
        warn(f"not drawn, since runs of them are no longer in {runs}: {names}")
    return before


def kept(pictures: Pictures) -> Pictures:
    """Those that were drawn before."""
    return [(caption, path) for caption, path in pictures if path.is_file()]


def score_picture(
    outcomes: Sequence[Outcome], published: Published, metrics: Sequence[str], folder: Path
) -> Pictures:
    """For each data set the metrics of every system, on as many images as were measured."""
    rows = result_rows(outcomes, published)
    drawn: Pictures = []
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
        drawn.append((f"{names} on {data}", path))
    return drawn


def intervention_pictures(
    outcomes: Sequence[Outcome], runs: Path, folder: Path, *, notes: bool = False
) -> Pictures:
    """One test image under interventions, a row for the simulator and one for every system, or for every
    note of it."""
    drawn: Pictures = []
    first = first_of_each(outcomes, notes=notes)
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        shown = {system: outcome for (name, system), outcome in first.items() if name == data}
        picture = f"Interventions on {data}", folder / f"interventions-{data}.png"
        drawn += drawn_or_kept([picture], shown, runs, partial(_draw_interventions, picture))
    return drawn


def _draw_interventions(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    models = {s: run.model for s, run in opened.items() if isinstance(run.model, Intervenes)}
    dataset = next(iter(opened.values())).dataset
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
    figures.save_figure(figures.labelled_rows(pad_rows(rows), labels), picture[1])
    return [picture]


def effect_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """What interventions should move and do move, for the first seed of every system."""
    drawn: Pictures = []
    for (data, system), outcome in first_of_each(outcomes).items():
        leak = next((score for score in outcome.scores if score["name"] == "effect-leak"), None)
        if leak is not None:
            name = f"effects-{data}-{system.replace('/', '-')}.png"
            path = figures.save_figure(effects_of(leak["details"]), folder / name)
            drawn.append((f"What interventions move: {outcome.trial.title} on {data}", path))
    return drawn


def graph_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """For each data set the graph that was learnt, beside the true one."""
    drawn: dict[str, Pictures] = {}
    for (data, system), outcome in first_of_each(outcomes).items():
        if data not in drawn:
            picture = f"The graph of {system} on {data}", folder / f"graph-{data}.png"
            draw = partial(_draw_graph, picture)
            found = drawn_or_kept([picture], {system: outcome}, runs, draw)
            # One whose run is gone may be the one that was drawn: no other takes its place.
            if found or outcome.trial.finished_run(runs) is None:
                drawn[data] = found
    return [picture for found in drawn.values() for picture in found]


def _draw_graph(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    (run,) = opened.values()
    model = run.model
    if not isinstance(model, Intervenes) or not model.graph.edges:
        return []
    figures.save_figure(figures.graph_figure(model.graph, run.dataset.graph), picture[1])
    return [picture]


def first_of_each(
    outcomes: Sequence[Outcome], *, notes: bool = False
) -> dict[tuple[str, str], Outcome]:
    """The first outcome of each data set and system, or of each note of a system."""
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        trial = outcome.trial
        system = _name(trial.system, trial.note) if notes else trial.system
        found.setdefault((trial.data, system), outcome)
    return found


def _name(system: str, note: str) -> str:
    return f"{system}\n{note}" if note else system
