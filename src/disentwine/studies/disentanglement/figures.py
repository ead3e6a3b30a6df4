"""Figures of disentanglement studies: scores, trade-off, learning curves, traversals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.core.dataset import evenly_spaced
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.evaluation.latents import traverse
from disentwine.figures.bars import grouped_bars
from disentwine.runs.run import Run
from disentwine.runs.storage import write_atomically
from disentwine.studies.disentanglement.measures import MINUTES
from disentwine.studies.disentanglement.trials import RESET_LATENTS
from disentwine.studies.figures import FigureFiles, draw_or_keep
from disentwine.studies.study import Published, result_rows
from disentwine.studies.trial import TrialResult

BARS = {"z-diff-no-shape": "Z-diff, 4 factors", "z-diff": "Z-diff, 5 factors", "sap": "SAP"}
EARLIEST = 0.01
"""First point of a learning curve, as a share of its time."""
WATCHED = {
    "z-diff": "Z-diff, 5 factors, validation",
    "sap": "SAP, validation",
    "reconstruction-error": "reconstruction error",
}
VALUES, FRAMES = 7, 15
MOST_ROWS = 10
IMAGES = 500
"""Images that the range of each latent is estimated from."""

Key = tuple[str, str]
"""System and note."""

Rows = dict[Key, dict[str, Mapping[str, Any]]]


def rows_of(results: Sequence[TrialResult], published: Published, data: str) -> Rows:
    """Rows on one data set, by system and note, then by metric."""
    found: Rows = {}
    for row in sorted(result_rows(results, published), key=lambda row: row["n"]):
        if row["data"] == data:
            found.setdefault((row["system"], row["note"]), {})[row["metric"]] = row
    order = dict.fromkeys((o.trial.system, o.trial.note) for o in results)
    return {key: found[key] for key in order if key in found}


def bar_figures(results: Sequence[TrialResult], published: Published, folder: Path) -> FigureFiles:
    """Z-diff and SAP of every row, on each data set."""
    written: FigureFiles = []
    for data in dict.fromkeys(result.trial.data for result in results):
        rows = rows_of(results, published, data)

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
        written.append((f"Z-diff and SAP on {data}", path))
    return written


def trade_off_figures(
    results: Sequence[TrialResult], published: Published, folder: Path
) -> FigureFiles:
    """Z-diff and SAP by reconstruction error, as the weight of each system's penalty varies."""
    written: FigureFiles = []
    metrics = {"z-diff-no-shape-svm": "Z-diff of 4 factors, by SVM", "sap": "SAP"}
    for data in dict.fromkeys(result.trial.data for result in results):
        curves = []
        for field in ("value", "paper"):
            points: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
            for (system, note), row in rows_of(results, published, data).items():
                known = row.get("reconstruction-error", {}).get(field) is not None
                if field == "paper" and system.endswith((" annealed", f" {RESET_LATENTS}")):
                    continue  # same published number as the plain row
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
            title = f"Scores by reconstruction error on {data}; labels are beta or lambda"
            written.append((title, path))
    return written


def learning_curve_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """Validation scores by training time on one core, for the longest training of each system."""
    written: FigureFiles = []
    ends = {o.trial: o.learning_curve[-1]["seconds"] for o in results if o.learning_curve}
    for data in dict.fromkeys(result.trial.data for result in results):
        longest: dict[str, tuple[float, figures.ScoreCurve]] = {}
        for result in results:
            learning_curve = result.learning_curve if result.trial.data == data else ()
            if len(learning_curve) < 2 or result.trial.note == "untrained":
                continue
            # A run interrupted at once has an early point, which would compress the scale.
            first = EARLIEST * learning_curve[-1]["seconds"]
            late = [record for record in learning_curve[1:] if record["seconds"] >= first]
            before = ends.get(result.trial.after, 0.0) if result.trial.after else 0.0
            minutes = [(before + record["seconds"]) / 60 for record in late]
            scores = {
                title: [record["scores"].get(name, np.nan) for record in late]
                for name, title in WATCHED.items()
            }
            shown = figures.ScoreCurve(_label(_key(result)), minutes, scores)
            if minutes[-1] > 1.2 * longest.get(result.trial.system, (0.0, shown))[0]:
                longest[result.trial.system] = minutes[-1], shown
        if longest:
            figure = figures.score_curves(
                [shown for _, shown in longest.values()],
                across="minutes on one core",
                marks=MINUTES,
                logarithmic=True,
                steep=[WATCHED["reconstruction-error"]],
            )
            path = figures.save_figure(figure, folder / f"learning-curve-{data}.png")
            caption = f"Validation scores by training time, one training of each system, on {data}"
            written.append((caption, path))
    return written


def traversal_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Traversals of the most informative latent of each factor, in every model."""
    written: FigureFiles = []
    for data in dict.fromkeys(result.trial.data for result in results):
        first: dict[Key, TrialResult] = {}
        for result in results:
            trained = not result.trial.baseline and result.trial.note != "untrained"
            if result.trial.data == data and trained:
                first.setdefault(_key(result), result)
        shown = dict(list(first.items())[:MOST_ROWS])
        if shown:
            some = f", of the first {MOST_ROWS} systems" if len(first) > MOST_ROWS else ""
            saps = {key: _sap(result) for key, result in shown.items()}
            best = max(saps, key=lambda key: saps[key]["value"])
            name = re.sub(r"[^\w.]+", "-", _label(best))
            still, moving = f"traversals-{data}.png", f"traversals-{data}-{name}.gif"
            figure_files = [
                (
                    f"Traversals of the most informative latent of each factor on {data}{some}",
                    folder / still,
                ),
                (f"Animated traversals of {_label(best)} on {data}", folder / moving),
            ]
            draw = partial(_draw_traversals, figure_files, saps, best)
            written += draw_or_keep(figure_files, shown, runs, draw)
    return written


def _draw_traversals(
    figure_files: FigureFiles,
    saps: Mapping[Key, Mapping[str, Any]],
    best: Key,
    loaded: Mapping[Key, Run],
) -> FigureFiles:
    dataset = loaded[best].dataset
    if "shape" not in dataset.names:
        return []
    images = dataset.images[evenly_spaced(dataset.split["test"], IMAGES)]

    def strips(key: Key, values: int) -> UInt8Array:
        latents = np.argmax(np.array(saps[key]["details"]["matrix"], dtype=float), axis=0)
        return traversal_strips(loaded[key].model, images, latents, values)

    (_, still), (_, moving) = figure_files
    figure = figures.traversal_grid(
        np.stack([strips(key, VALUES) for key in loaded]),
        rows=[_label(key, "\n") for key in loaded],
        columns=dataset.names,
    )
    figures.save_figure(figure, still)
    film = figures.animated_traversals(strips(best, FRAMES), list(dataset.names))
    write_atomically(moving, film)
    return figure_files


def _sap(result: TrialResult) -> Mapping[str, Any]:
    return next(score for score in result.scores if score["name"] == "sap")


def traversal_strips(
    model: Any, images: UInt8Array, latents: Sequence[int], values: int
) -> UInt8Array:
    """Traversals of some latents of the middle image over their range, (latents, values, h, w, c)."""
    codes = model.represent(images)
    least, most = np.quantile(codes, [0.02, 0.98], axis=0)
    each, places = np.unique(latents, return_inverse=True)  # several factors may share a latent
    values_of = {int(i): np.linspace(least[i], most[i], values) for i in each}
    return traverse(model, codes[len(codes) // 2], values_of)[places]


def _setting(note: str) -> float | None:
    """The number of a note such as "beta 4"; None for other notes."""
    words = note.split(" ")
    return float(words[1]) if len(words) == 2 and words[1].isdigit() else None


def _key(result: TrialResult) -> Key:
    return result.trial.system, result.trial.note


def _label(key: Key, between: str = " ") -> str:
    return between.join(filter(None, key))
