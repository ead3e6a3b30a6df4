"""Sections of a report and their order.

A section is a function of the context; it returns None if the model lacks the capability.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from disentwine import figures
from disentwine.core.capabilities import Adversarial, Generates, MatchesActions
from disentwine.core.dataset import evenly_spaced
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.nn.images import to_uint8
from disentwine.report.context import ReportContext
from disentwine.report.html import Image, Section, Table
from disentwine.report.sections.actions import action_graphs, action_retrieval, action_rollouts
from disentwine.report.sections.interventions import (
    causal_graph,
    counterfactuals,
    effects,
    graph_weights,
)
from disentwine.report.sections.latents import (
    kl_per_latent,
    kl_per_layer,
    mutual_information,
    traversals,
)
from disentwine.report.text import number
from disentwine.runs.checkpoint import versions
from disentwine.runs.recipe import ARRAYS
from disentwine.runs.run import kept_scores

PAIRS, SAMPLES, SAMPLE_COLUMNS = 8, 20, 10


def reconstructions(context: ReportContext) -> Section:
    """Images of the held-out split and their reconstructions."""
    originals = context.dataset.images[evenly_spaced(context.found.indices, PAIRS)]
    figure = figures.image_pairs(originals, context.model.reconstruct(originals))
    score = context.found.score("reconstruction-error")
    error = f" Mean squared error per pixel: {number(score.value)}." if score else ""
    return Section(
        "Reconstructions",
        f"Held-out images of the {context.found.split} split, their reconstructions and the "
        f"difference.{error}",
        Image(
            "reconstructions",
            f"{len(originals)} original images, their reconstructions and the difference",
            figures.to_png_bytes(figure),
        ),
    )


def samples(context: ReportContext) -> Section | None:
    """Images sampled from the prior."""
    model = context.model
    if not isinstance(model, Generates):
        return None
    with fixed_noise(context.run.recipe.seed):
        images = to_uint8(model.sample(SAMPLES)).cpu().numpy()
    figure = figures.image_grid(images, SAMPLE_COLUMNS)
    return Section(
        "Samples",
        "Images sampled from the model's prior, not selected.",
        Image("samples", f"{SAMPLES} images sampled from the model", figures.to_png_bytes(figure)),
    )


def losses(context: ReportContext) -> Section | None:
    """Curves of the training losses."""
    records = context.run.metrics
    if not records:
        return None
    chosen = (
        "The discriminator has its own terms. Its loss and the model's depend on each other, so the last "
        "weights are used."
        if isinstance(context.model, Adversarial)
        else "The weights with the lowest total validation loss are used."
    )
    if isinstance(context.model, MatchesActions):
        chosen = f"Images are learnt first, then actions, each with its own terms. {chosen}"
    return Section(
        "Training",
        f"Every term of the loss and their weighted total. {chosen}",
        Image(
            "losses",
            "Curves of the training and validation losses over the steps",
            figures.to_png_bytes(figures.loss_curves(records)),
        ),
    )


def metrics(context: ReportContext) -> Section:
    """All scores of these weights, also earlier ones of `disentwine evaluate`."""
    known = {score.name for score in context.found.scores}
    before = [s for s in kept_scores(context.run) if s["name"] not in known]
    rows = [
        (
            score.name,
            number(score.value),
            "" if score.noise_floor is None else number(score.noise_floor),
            f"{score.n:,}",
            str(score.details.get("about", "")),
        )
        for score in [*context.found.scores, *(Score(**score) for score in before)]
        if score.value is not None
    ]
    rows.append(
        ("parameters", f"{context.parameters:,}", "", "", "trainable parameters of the model")
    )
    if "seconds" in context.status:
        seconds = context.status["seconds"]
        row = ("training-seconds", number(round(seconds, 1)), "", "", "training time in seconds")
        rows.append(row)
    size = len(context.dataset.split[context.found.split])
    of = (
        ""
        if size == len(context.found.indices)
        else f", {len(context.found.indices):,} of {size:,}"
    )
    step = context.run.checkpoint.step
    return Section(
        "Metrics",
        f"Measured on the {context.found.split} split{of}, with the weights of step {step:,}. The noise "
        "floor is the chance level, or the lowest reachable value of an error.",
        table=Table(("score", ">value", ">chance level", ">n", "about"), tuple(rows)),
    )


def recipe(context: ReportContext) -> Section:
    """The recipe of the run."""
    return Section(
        "Recipe",
        "All options, with their defaults; the same text is in recipe.yaml.",
        code=context.run.recipe.to_yaml().rstrip(),
    )


def commands(context: ReportContext) -> Section:
    """Commands that reproduce the run and its report."""
    path, place = context.run.path.resolve(), "the parent folder of the run"
    name = path.name
    own = Path(context.run.recipe.data.get("path", "/"))
    if not own.expanduser().is_absolute():  # relative to the folder of the training, like the run
        name, place = os.path.relpath(path), f"the folder that has {own}"
    run, again = shlex.quote(name), shlex.quote(f"{name}-again")
    lines = [f"disentwine evaluate {run}", f"disentwine report {run}"]
    text = f"In {place}: evaluate the run, regenerate this page."
    if context.run.recipe.data["name"] != ARRAYS:
        recipe_path = shlex.quote(f"{name}/recipe.yaml")
        lines.insert(0, f"disentwine train {recipe_path} --out {again}")
        text = f"In {place}: train, evaluate, regenerate this page."
    return Section("Reproduce", text, code="\n".join(lines))


def package_versions(context: ReportContext) -> Section:
    """Versions of the packages that affect results."""
    trained, now = dict(context.run.checkpoint.state.get("versions", {})), versions()
    if trained == now:
        return Section("Versions", ", ".join(f"{name} {now[name]}" for name in now) + ".")
    rows = tuple((package, trained.get(package, ""), now[package]) for package in now)
    return Section(
        "Versions",
        "Training and this page used different versions.",
        table=Table(("package", ">training", ">page"), rows),
    )


SECTIONS: tuple[Callable[[ReportContext], Section | None], ...] = (
    counterfactuals,
    action_rollouts,
    action_retrieval,
    action_graphs,
    effects,
    causal_graph,
    graph_weights,
    reconstructions,
    traversals,
    mutual_information,
    kl_per_layer,
    kl_per_latent,
    samples,
    losses,
    metrics,
    recipe,
    commands,
    package_versions,
)
