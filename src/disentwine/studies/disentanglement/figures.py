"""Pictures of unsupervised disentanglement: scores, their course, and what each code does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.splits import evenly_spaced
from disentwine.evaluation.latents import traverse
from disentwine.figures.bars import grouped_bars
from disentwine.runs.run import Run
from disentwine.runs.storage import write_atomically
from disentwine.studies.disentanglement.measures import MINUTES
from disentwine.studies.figures import Pictures, drawn_or_kept
from disentwine.studies.study import Published, result_rows
from disentwine.studies.trial import Outcome

BARS = {"z-diff-no-shape": "Z-diff, 4 factors", "z-diff": "Z-diff, 5 factors", "sap": "SAP"}
EARLIEST = 0.01
"""Of a training's time, the first point of its curve."""
WATCHED = {
    "z-diff": "Z-diff, 5 factors, validation",
    "sap": "SAP, validation",
    "reconstruction-error": "reconstruction error",
}
VALUES, FRAMES = 7, 15
MOST_ROWS = 10
IMAGES = 500
"""Enough to know how far each code reaches."""

Key = tuple[str, str]
"""System and note."""

Rows = dict[Key, dict[str, Mapping[str, Any]]]


def rows_of(outcomes: Sequence[Outcome], published: Published, data: str) -> Rows:
    """By system and note, then by metric: the row of the results on one data set."""
    found: Rows = {}
    for row in sorted(result_rows(outcomes, published), key=lambda row: row["n"]):
        if row["data"] == data:
            found.setdefault((row["system"], row["note"]), {})[row["metric"]] = row
    order = dict.fromkeys((o.trial.system, o.trial.note) for o in outcomes)
    return {key: found[key] for key in order if key in found}


def bar_pictures(outcomes: Sequence[Outcome], published: Published, folder: Path) -> Pictures:
    """Z-diff and SAP of every row, on each data set."""
    drawn: Pictures = []
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        rows = rows_of(outcomes, published, data)

        def table(field: str, rows: Rows = rows) -> FloatArray:
            cells = [[row.get(m, {}).get(field) for m in BARS] for row in rows.values()]
            return np.array(cells, dtype=float)

        figure = grouped_bars(
            table("value"),
            spreads=table("spread"),
            published=table("paper"),
            groups=[_label((re.sub(", best.*", "\nbest", key[0]), key[1]), "\n") for key in rows],
            bars=list(BARS.values()),
            title=f"{data}, test split",
        )
        path = figures.save_figure(figure, folder / f"scores-{data}.png")
        drawn.append((f"Z-diff and SAP on {data}", path))
    return drawn


def trade_off_picture(outcomes: Sequence[Outcome], published: Published, folder: Path) -> Pictures:
    """Z-diff and SAP against the reconstruction error, as a setting of each system is varied."""
    drawn: Pictures = []
    metrics = {"z-diff-no-shape-svm": "Z-diff of 4 factors, by SVM", "sap": "SAP"}
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        curves = []
        for field in ("value", "paper"):
            points: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
            for (system, note), row in rows_of(outcomes, published, data).items():
                known = row.get("reconstruction-error", {}).get(field) is not None
                if field == "paper" and system.endswith((" annealed", " woken")):
                    continue  # the point of the plain row, again
                setting = 1.0 if system == "vae" and not note else _setting(note)
                if known and setting is not None:
                    name = "beta-vae" if system == "vae" else system
                    points.setdefault(name, []).append((setting, row))
            curves += [
                figures.Curve(
                    name,
                    [setting for setting, _ in found],
                    errors=[row["reconstruction-error"][field] for _, row in found],
                    scores={
                        title: [row[metric][field] for _, row in found]
                        for metric, title in metrics.items()
                    },
                    spreads={
                        title: [row[metric]["spread"] or 0.0 for _, row in found]
                        for metric, title in metrics.items()
                        if field == "value"
                    },
                    published=field == "paper",
                )
                for name, found in points.items()
            ]
        if curves:
            path = figures.save_figure(figures.trade_off(curves), folder / f"trade-off-{data}.png")
            title = f"Scores against reconstruction error on {data}; numbers are beta or lambda"
            drawn.append((title, path))
    return drawn


def course_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """What trainings had scored on the validation split after how many minutes of one core.

    The longest training of each system is shown.
    """
    drawn: Pictures = []
    ends = {o.trial: o.course[-1]["seconds"] for o in outcomes if o.course}
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        longest: dict[str, tuple[float, figures.Course]] = {}
        for outcome in outcomes:
            course = outcome.course if outcome.trial.data == data else ()
            if len(course) < 2 or outcome.trial.note == "untrained":
                continue
            # One that was interrupted at once has a point there, which would squeeze all others.
            first = EARLIEST * course[-1]["seconds"]
            late = [record for record in course[1:] if record["seconds"] >= first]
            before = ends.get(outcome.trial.after, 0.0) if outcome.trial.after else 0.0
            minutes = [(before + record["seconds"]) / 60 for record in late]
            scores = {
                title: [record["scores"].get(name, np.nan) for record in late]
                for name, title in WATCHED.items()
            }
            shown = figures.Course(_label(_key(outcome)), minutes, scores)
            if minutes[-1] > 1.2 * longest.get(outcome.trial.system, (0.0, shown))[0]:
                longest[outcome.trial.system] = minutes[-1], shown
        if longest:
            figure = figures.course_curves(
                [shown for _, shown in longest.values()],
                across="minutes on one core",
                marks=MINUTES,
                logarithmic=True,
                steep=[WATCHED["reconstruction-error"]],
            )
            path = figures.save_figure(figure, folder / f"course-{data}.png")
            caption = f"Scores over the time of one training of each system on {data}"
            drawn.append((caption, path))
    return drawn


def traversal_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """For each factor the code that knows it best, moved while the others stay, in every model."""
    drawn: Pictures = []
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        first: dict[Key, Outcome] = {}
        for outcome in outcomes:
            trained = not outcome.trial.baseline and outcome.trial.note != "untrained"
            if outcome.trial.data == data and trained:
                first.setdefault(_key(outcome), outcome)
        shown = dict(list(first.items())[:MOST_ROWS])
        if shown:
            some = f", of the first {MOST_ROWS} systems" if len(first) > MOST_ROWS else ""
            saps = {key: _sap(outcome) for key, outcome in shown.items()}
            best = max(saps, key=lambda key: saps[key]["value"])
            name = re.sub(r"[^\w.]+", "-", _label(best))
            still, moving = f"traversals-{data}.png", f"traversals-{data}-{name}.gif"
            pictures = [
                (f"The best code of each factor, moved, on {data}{some}", folder / still),
                (f"The same of {_label(best)}, moving", folder / moving),
            ]
            draw = partial(_draw_traversals, pictures, saps, best)
            drawn += drawn_or_kept(pictures, shown, runs, draw)
    return drawn


def _draw_traversals(
    pictures: Pictures,
    saps: Mapping[Key, Mapping[str, Any]],
    best: Key,
    opened: Mapping[Key, Run],
) -> Pictures:
    dataset = opened[best].dataset
    if "shape" not in dataset.names:
        return []
    images = dataset.images[evenly_spaced(dataset.split["test"], IMAGES)]

    def strips(key: Key, values: int) -> UInt8Array:
        units = np.argmax(np.array(saps[key]["details"]["matrix"], dtype=float), axis=0)
        return moved(opened[key].model, images, units, values)

    (_, still), (_, moving) = pictures
    figure = figures.traversal_grid(
        np.stack([strips(key, VALUES) for key in opened]),
        rows=[_label(key, "\n") for key in opened],
        columns=dataset.names,
    )
    figures.save_figure(figure, still)
    film = figures.animated_traversals(strips(best, FRAMES), list(dataset.names))
    write_atomically(moving, film)
    return pictures


def _sap(outcome: Outcome) -> Mapping[str, Any]:
    return next(score for score in outcome.scores if score["name"] == "sap")


def moved(model: Any, images: UInt8Array, units: Sequence[int], values: int) -> UInt8Array:
    """The middle image with each of some units moved over its range, (units, values, h, w, c)."""
    codes = model.represent(images)
    least, most = np.quantile(codes, [0.02, 0.98], axis=0)
    each, places = np.unique(units, return_inverse=True)  # one unit may know several factors best
    values_of = {int(unit): np.linspace(least[unit], most[unit], values) for unit in each}
    return traverse(model, codes[len(codes) // 2], values_of)[places]


def _setting(note: str) -> float | None:
    """The number of a note such as "beta 4"; none where it says something else."""
    words = note.split(" ")
    return float(words[1]) if len(words) == 2 and words[1].isdigit() else None


def _key(outcome: Outcome) -> Key:
    return outcome.trial.system, outcome.trial.note


def _label(key: Key, between: str = " ") -> str:
    return between.join(filter(None, key))
