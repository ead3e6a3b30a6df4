"""Report sections on latents: traversals, mutual information, KL; score matrices."""

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
from disentwine.figures.heat_maps import MOST_ROWS as MOST_SHOWN
from disentwine.report.context import ReportContext
from disentwine.report.html import Image, Section
from disentwine.report.text import number, pad_rows
from disentwine.runs.storage import write_atomically


def kl_per_layer(context: ReportContext) -> Section | None:
    """KL divergence of every latent of a hierarchy, by layer."""
    model, kl = context.model, context.found.latent_kl
    if not isinstance(model, Hierarchical) or kl is None:
        return None
    of = np.array(model.latent_layers)
    figure = figures.layer_activity([kl[of == i] for i in range(1, int(of.max()) + 1)])
    return Section(
        "KL per layer",
        "Mean KL divergence of the posterior of every latent from its prior given the layer above. The "
        "layer next to the image is at the bottom; latents of a layer are sorted. A latent without KL "
        "divergence adds no information. With top-down inference, as in a ladder VAE, the sum of a layer "
        "is its loss term kl_1, kl_2, ...; with bottom-up inference it is not.",
        Image(
            "layers",
            "Heat map of the KL divergence of latents by layer, with the total of each layer",
            figures.to_png_bytes(figure),
        ),
    )


def counts_by_layer(context: ReportContext, shown: list[int]) -> str:
    """Number of active latents shown per layer, such as "1 of 1 in layer 2, 3 of 9 in layer 1"."""
    assert isinstance(context.model, Hierarchical)
    layers = np.array(context.model.latent_layers)
    counts = [
        f"{(layers[shown] == i).sum()} of {(layers[context.most_informative] == i).sum()} in layer {i}"
        for i in range(int(layers.max()), 0, -1)
    ]
    return ", ".join(counts)


MOST_LATENTS = 200


def matrix_figure(score: Score, *, latents: Mapping[int, str] | None = None) -> Figure | None:
    """Heat map of a score's matrix of latents by factors; None if the score has none.

    Arguments:
        score: of latents and factors.
        latents: names of the latents to show, by index; all by default.
    """
    matrix, factors = score.details.get("matrix"), score.details.get("factors")
    if matrix is None or factors is None:
        return None
    names = {i: f"z{i}" for i in range(len(matrix))} if latents is None else latents
    if not 0 < len(names) <= MOST_LATENTS:
        return None
    return figures.score_matrix(
        np.asarray(matrix)[list(names)],
        rows=list(names.values()),
        columns=factors,
        title=score.name,
    )


def effects_figure(found: Evaluation) -> Figure | None:
    """Expected and actual effects of interventions; None if they were not measured."""
    score = found.score("off-target-effect")
    return None if score is None else effects_of(score.details)


def effects_of(measured: Mapping[str, Any]) -> Figure:
    """Heat maps of the matrices that `evaluation.effects` measured."""
    return figures.effect_matrix_figure(
        expected=measured["expected_movement"],
        actual=measured["actual_movement"],
        error=measured["error"],
        floor=measured.get("error_floor"),
        rows=measured["concepts"],
        columns=measured["factors"],
    )


def save_matrices(found: Evaluation, folder: Path) -> Iterator[Path]:
    """Save a figure for each score that has a matrix; yields their paths."""
    files = {f"{score.name}-matrix": matrix_figure(score) for score in found.scores}
    files["effects"] = effects_figure(found)
    for name, figure in files.items():
        if figure is not None:
            path = folder / f"{name}.png"
            write_atomically(path, figures.to_png_bytes(figure))
            yield path


MOST_ROWS, MOST_BARS = 12, 32

DEVIATIONS = np.linspace(-2, 2, 9)

RANKS = ("most frequent", "2nd", "3rd", *(f"{i}th" for i in range(4, 10)))
"""Headings of the codes of a quantized latent."""


def traversals(context: ReportContext) -> Section | None:
    """Traversals of the active latents on one image."""
    codes, model = context.found.latents, context.model
    if codes is None or not isinstance(model, Decodes):
        return None
    title = "Latent traversals"
    shown = context.shown(MOST_SHOWN)
    if not shown:
        return Section(title, "No latent is active: the latents are the same for every image.")
    name = context.activity_name
    labels = [f"{context.latent_name(u)}\n{name} {context.activity[u]:.2f}" for u in shown]
    if isinstance(model, Quantizes):
        names = {unit: code_frequencies(codes[:, unit])[0][: len(RANKS)] for unit in shown}
        rows = [traverse(model, codes[0], {unit: names[unit]})[0] for unit in shown]
        figure = figures.labelled_rows(pad_rows(rows), labels, RANKS)
        change = (
            "set to its most frequent codes. Codes are categories: neighbours in a row need not "
            "look alike. Latents with fewer codes leave places empty"
        )
    else:
        values = codes.mean(axis=0) + DEVIATIONS[:, None] * codes.std(axis=0)
        images = traverse(model, codes[0], {unit: values[:, unit] for unit in shown})
        figure = figures.traversals(images, DEVIATIONS.tolist(), labels)
        change = "varied, from two standard deviations below its mean to two above"
    return Section(
        title,
        f"One {context.found.split} image decoded with a single latent {change}. "
        f"{_choice(context, shown)}",
        Image(
            "traversals",
            f"Decoded images of {len(shown)} latents, a row each, at up to nine values from "
            f"left to right",
            figures.to_png_bytes(figure),
        ),
    )


def _choice(context: ReportContext, shown: list[int]) -> str:
    """Which latents are shown, in which order, and how many there are."""
    if isinstance(context.model, Hierarchical):
        return (
            f"Rows go from the top layer down, the most informative latents of each layer first; layers "
            f"below follow a latent. Active latents shown: {counts_by_layer(context, shown)}."
        )
    active = len(context.most_informative)
    more = f" Shown are {len(shown)} of {active}." if active > len(shown) else ""
    return f"Active latents only, the most informative first.{more}"


def mutual_information(context: ReportContext) -> Section | None:
    """Mutual information of latents with factors."""
    score = context.found.score("mic") or context.found.score("mig")
    if score is None:
        return None
    latents, more = None, ""
    if context.active_by_kl:
        shown = context.shown(MOST_SHOWN)
        latents = {i: context.latent_name(i) for i in shown}
        more = f" Active latents shown: {counts_by_layer(context, shown)}."
    elif (count := len(score.details.get("matrix", ()))) > MOST_SHOWN:
        more = f" Shown are the {MOST_SHOWN} of {count} latents that are most informative."
    if latents is None and not context.active.all():
        more += " Inactive latents are included: the measure does not depend on their scale."
    figure = matrix_figure(score, latents=latents)
    if figure is None:
        return None
    measure = {
        "mic": "Maximal information coefficient of latents and factors",
        "mig": "Mutual information of latents and factors, divided by the entropy of the factor",
    }
    chance = score.details.get("matrix_noise_floor")
    floor = f" The chance level is {number(chance)}." if chance else ""
    return Section(
        "Mutual information with factors",
        f"{measure[score.name]}, from 0 to 1.{floor}{more}",
        Image("mutual-information", "Heat map of latents by factors", figures.to_png_bytes(figure)),
    )


def kl_per_latent(context: ReportContext) -> Section | None:
    """KL divergence, or variance, of every latent, and which are active."""
    if len(context.activity) == 0:
        return None
    prior = "its prior" if context.active_by_kl else "a standard normal"
    measures = {
        "KL": f"mean KL divergence from {prior} (nats)",
        "var": "variance of the latent",
        "differs": "probability that two images have different codes",
    }
    shown = np.argsort(-context.activity, kind="stable")[:MOST_BARS]
    figure = figures.latent_activity(
        context.activity[shown],
        labels=[context.latent_name(int(unit)) for unit in shown],
        active=context.active[shown].tolist(),
        measure=measures[context.activity_name],
    )
    active, count = int(context.active.sum()), len(context.active)
    if context.active_by_kl:
        reason = f"their KL divergence from the prior is above {ACTIVE_NATS} nats"
    elif isinstance(context.model, Quantizes):
        reason = f"two images have different codes with a probability above {ACTIVE_VARIANCE}"
    else:
        reason = f"their variance over images is above {ACTIVE_VARIANCE}"
    text = f"{active} of {count} latents are active: {reason}."
    if not context.active[shown].all():
        text += " Inactive latents are faint."
    text += f" Shown are the {len(shown)} most informative." if len(shown) < count else ""
    titles = {"KL": "KL per latent", "var": "Variance per latent", "differs": "Codes per latent"}
    return Section(
        titles[context.activity_name],
        text,
        Image(
            "activity",
            "Bar chart of the activity of each latent, sorted",
            figures.to_png_bytes(figure),
        ),
    )
