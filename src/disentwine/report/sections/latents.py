"""KL per layer section; heat-map figures from scores; traversals, MI matrix, active units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.core.capabilities import Decodes, Hierarchical, Quantizes
from disentwine.core.score import Score
from disentwine.core.types import ACTIVE_NATS, ACTIVE_VARIANCE
from disentwine.evaluation.evaluate import Evaluation
from disentwine.evaluation.latents import code_frequencies, traverse
from disentwine.figures.heat_maps import MOST_ROWS as MOST_KNOWING
from disentwine.report.context import ReportContext
from disentwine.report.html import Picture, Section
from disentwine.report.text import number, pad_rows
from disentwine.runs.storage import write_atomically


def layers(subject: ReportContext) -> Section | None:
    """How much each unit of each layer adds to what the layer above says."""
    model, kl = subject.model, subject.found.latent_kl
    if not isinstance(model, Hierarchical) or kl is None:
        return None
    of = np.array(model.unit_layers)
    figure = figures.layer_activity([kl[of == i] for i in range(1, int(of.max()) + 1)])
    return Section(
        "What each layer carries",
        "The mean KL divergence of every unit's posterior from its prior given the layer above, the "
        "layer next to the image at the bottom, each layer's busiest unit first. A unit without any "
        "adds nothing. Where inference comes down the layers, as a ladder's, a layer's sum is its term "
        "kl_1, kl_2, ... of the loss; where it goes up, the layer above knows of this one, and it is not.",
        Picture(
            "layers",
            "A map of units by layers, darker where a unit carries more, with each layer's total",
            figures.to_png_bytes(figure),
        ),
    )


def shares(subject: ReportContext, shown: list[int]) -> str:
    """How many of each layer's live units are shown, such as "1 of 1 in layer 2, 3 of 9 in layer 1"."""
    assert isinstance(subject.model, Hierarchical)
    layers = np.array(subject.model.unit_layers)
    counts = [
        f"{(layers[shown] == i).sum()} of {(layers[subject.most_informative] == i).sum()} in layer {i}"
        for i in range(int(layers.max()), 0, -1)
    ]
    return ", ".join(counts)


MOST_CODES = 200


def matrix_figure(score: Score, *, units: Mapping[int, str] | None = None) -> Figure | None:
    """The score matrix of codes by factors, where the metric has one.

    Arguments:
        score: of codes and factors.
        units: the codes to show, by number, and their names; all where none are given.
    """
    matrix = score.details.get("matrix")
    if matrix is None:
        return None
    names = {i: f"z{i}" for i in range(len(matrix))} if units is None else units
    if not 0 < len(names) <= MOST_CODES:
        return None
    return figures.score_matrix(
        np.asarray(matrix)[list(names)],
        rows=list(names.values()),
        columns=score.details["factors"],
        title=score.name,
    )


def effects_figure(found: Evaluation) -> Figure | None:
    """What interventions should move and do move, where that was measured."""
    leak = found.score("off-target-effect")
    return None if leak is None else effects_of(leak.details)


def effects_of(measured: Mapping[str, Any]) -> Figure:
    """The heat maps of the matrices that `report.effects` measured."""
    return figures.effect_matrix_figure(
        expected=measured["expected_movement"],
        actual=measured["actual_movement"],
        error=measured["error"],
        floor=measured.get("error_floor"),
        rows=measured["concepts"],
        columns=measured["factors"],
    )


def save_matrices(found: Evaluation, folder: Path) -> Iterator[Path]:
    """Save a picture for each score that has a matrix; yields their paths."""
    pictures = {f"{score.name}-matrix": matrix_figure(score) for score in found.scores}
    pictures["effects"] = effects_figure(found)
    for name, figure in pictures.items():
        if figure is not None:
            path = folder / f"{name}.png"
            write_atomically(path, figures.to_png_bytes(figure))
            yield path


MOST_ROWS, MOST_BARS = 12, 32

DEVIATIONS = np.linspace(-2, 2, 9)

RANKS = ("commonest", "2nd", "3rd", *(f"{i}th" for i in range(4, 10)))
"""Names of a unit that are shown."""


def traversals(subject: ReportContext) -> Section | None:
    """What each unit that is alive does to one image."""
    codes, model = subject.found.latents, subject.model
    if codes is None or not isinstance(model, Decodes):
        return None
    title = "What each unit does"
    shown = subject.shown(MOST_KNOWING)
    if not shown:
        return Section(title, "No unit of the code is alive: it says the same of every image.")
    name = subject.activity_name
    labels = [f"{subject.latent_name(u)}\n{name} {subject.activity[u]:.2f}" for u in shown]
    if isinstance(model, Quantizes):
        names = {unit: code_frequencies(codes[:, unit])[0][: len(RANKS)] for unit in shown}
        rows = [traverse(model, codes[0], {unit: names[unit]})[0] for unit in shown]
        figure = figures.labelled_rows(pad_rows(rows), labels, RANKS)
        moved = (
            "named otherwise: as most images name it, then by its next commonest names. Names "
            "are no quantities: neighbours in a row need not look alike. A unit with fewer names "
            "leaves places empty"
        )
    else:
        values = codes.mean(axis=0) + DEVIATIONS[:, None] * codes.std(axis=0)
        images = traverse(model, codes[0], {unit: values[:, unit] for unit in shown})
        figure = figures.traversals(images, DEVIATIONS.tolist(), labels)
        moved = "moved, from two standard deviations below that unit's mean to two above"
    return Section(
        title,
        f"The code of one {subject.found.split} image with a single unit {moved}. Unit z0 is the "
        f"code's first column. {_choice(subject, shown)}",
        Picture(
            "traversals",
            f"Decoded images for {len(shown)} latent units, a row each, at up to nine values from "
            f"left to right",
            figures.to_png_bytes(figure),
        ),
    )


def _choice(subject: ReportContext, shown: list[int]) -> str:
    """Which units are shown, in which order, and how many there are."""
    if isinstance(subject.model, Hierarchical):
        return (
            f"Rows go from the top layer down, the busiest units of each layer first; a unit takes the "
            f"layers below along. Shown are, of the units that say something, {shares(subject, shown)}."
        )
    units = len(subject.most_informative)
    more = f" Shown are {len(shown)} of {units}." if units > len(shown) else ""
    return f"The busiest units come first; those that say nothing are left out.{more}"


def knowledge(subject: ReportContext) -> Section | None:
    """Which unit knows of which factor."""
    score = subject.found.score("mic") or subject.found.score("mig")
    if score is None:
        return None
    units, more = None, ""
    if subject.active_by_kl:
        shown = subject.shown(MOST_KNOWING)
        units = {unit: subject.latent_name(unit) for unit in shown}
        more = f" Of the units that say something, these are {shares(subject, shown)}."
    elif (all_units := len(score.details.get("matrix", ()))) > MOST_KNOWING:
        more = f" Shown are {MOST_KNOWING} of {all_units}, those that know most of each factor."
    if units is None and not subject.active.all():
        more += " It does not see by how little a unit varies: also those that are not alive are told of."
    figure = matrix_figure(score, units=units)
    if figure is None:
        return None
    measure = {"mic": "maximal information coefficient", "mig": "share of its entropy known"}
    chance = score.details.get("matrix_noise_floor")
    floor = f" Chance alone gives {number(chance)} on average." if chance else ""
    return Section(
        "What each unit knows of each factor",
        f"The {measure[score.name]} of units with factors, from 0 to 1.{floor}{more}",
        Picture("knowledge", "Heat map of units by factors", figures.to_png_bytes(figure)),
    )


def activity(subject: ReportContext) -> Section | None:
    """Which units are alive."""
    if len(subject.activity) == 0:
        return None
    prior = "its prior" if subject.active_by_kl else "a standard normal"
    measures = {
        "KL": f"mean KL divergence from {prior} (nats)",
        "var": "code variance",
        "differs": "chance that two images have different names",
    }
    shown = np.argsort(-subject.activity, kind="stable")[:MOST_BARS]
    figure = figures.unit_activity(
        subject.activity[shown],
        labels=[subject.latent_name(int(unit)) for unit in shown],
        alive=subject.active[shown].tolist(),
        measure=measures[subject.activity_name],
    )
    alive, units = int(subject.active.sum()), len(subject.active)
    if subject.active_by_kl:
        living = f"they differ by more than {ACTIVE_NATS} nats from what the layer above expects"
    elif isinstance(subject.model, Quantizes):
        living = f"their names differ between two images with a chance above {ACTIVE_VARIANCE}"
    else:
        living = f"their code varies by more than {ACTIVE_VARIANCE} over images"
    text = f"{alive} of {units} units are alive: {living}."
    if not subject.active[shown].all():
        text += " The others are drawn faint."
    text += f" The {len(shown)} busiest are shown." if len(shown) < units else ""
    return Section(
        "What each unit carries",
        text,
        Picture("activity", "Bars of each unit's activity, sorted", figures.to_png_bytes(figure)),
    )
