"""The pictures that studies share: scores beside the paper's, systems beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from disentwine import figures
from disentwine.contracts.capabilities import Intervenes
from disentwine.contracts.dataset import Simulates
from disentwine.figures.bars import grouped_bars
from disentwine.report.matrices import effects_of
from disentwine.studies.study import Published, result_rows
from disentwine.studies.trials import Outcome
from disentwine.training.run import load_run

VALUES = 7
Pictures = list[tuple[str, Path]]


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
        opened = {
            system: load_run(outcome.trial.folder(runs))
            for (name, system), outcome in first.items()
            if name == data
        }
        models = {s: run.model for s, run in opened.items() if isinstance(run.model, Intervenes)}
        dataset = next(iter(opened.values())).dataset
        if not models or not isinstance(dataset, Simulates):
            continue
        test = dataset.split["test"]
        index = test[len(test) // 2]
        noise = getattr(dataset, "noise", None)
        own_noise = None if noise is None else np.repeat(noise[[index]], VALUES)
        stack = np.repeat(dataset.images[[index]], VALUES, axis=0)
        factors = np.repeat(dataset.factors[[index]], VALUES, axis=0)
        rows, labels = [], []
        for name, column in zip(dataset.names, dataset.factors.T, strict=True):
            least, most = np.nanquantile(column, [0.02, 0.98])
            values = np.linspace(least, most, VALUES)
            rows.append(dataset.simulate(factors, {name: values}, noise=own_noise).images)
            labels.append(f"do({name.replace('_', ' ')})\ntruth")
            for system, model in models.items():
                rows.append(model.do(stack, {name: values}))
                labels.append(system)
        figure = figures.labelled_rows(np.stack(rows), labels)
        path = figures.save_figure(figure, folder / f"interventions-{data}.png")
        drawn.append((f"Interventions on {data}", path))
    return drawn


def effect_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """What interventions should move and do move, for the first seed of every system."""
    drawn: Pictures = []
    for (data, system), outcome in first_of_each(outcomes).items():
        leak = next((score for score in outcome.scores if score["name"] == "effect-leak"), None)
        if leak is not None:
            name = f"effects-{data}-{system.replace('/', '-')}.png"
            path = figures.save_figure(effects_of(leak["details"]), folder / name)
            drawn.append((f"What interventions move: {system} on {data}", path))
    return drawn


def graph_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """For each data set the graph that was learnt, beside the true one."""
    drawn: dict[str, tuple[str, Path]] = {}
    for (data, system), outcome in first_of_each(outcomes).items():
        run = load_run(outcome.trial.folder(runs))
        model = run.model
        if data in drawn or not isinstance(model, Intervenes) or not model.graph.edges:
            continue
        figure = figures.graph_figure(model.graph, run.dataset.graph)
        path = figures.save_figure(figure, folder / f"graph-{data}.png")
        drawn[data] = f"The graph of {system} on {data}", path
    return list(drawn.values())


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
