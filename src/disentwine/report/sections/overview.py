"""The sections of a report, in the order in which a reader wants them.

A section is a function of the subject; it answers none where the model cannot do what it shows.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from disentwine import figures
from disentwine.core.capabilities import Adversarial, Generates, LearnsActions
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.data.splits import evenly_spaced
from disentwine.nn.images import to_uint8
from disentwine.report.context import ReportContext
from disentwine.report.html import Picture, Section, Table
from disentwine.report.sections.actions import actions, confusions, touched
from disentwine.report.sections.interventions import adjacency, causes, effects, interventions
from disentwine.report.sections.latents import activity, knowledge, layers, traversals
from disentwine.report.text import number
from disentwine.runs.provenance import versions
from disentwine.runs.recipe import IN_MEMORY
from disentwine.runs.run import kept_scores

PAIRS, SAMPLES, SAMPLE_COLUMNS = 8, 20, 10


def reconstructions(subject: ReportContext) -> Section:
    """Originals beside reconstructions, spread over the held-out split."""
    originals = subject.dataset.images[evenly_spaced(subject.found.indices, PAIRS)]
    figure = figures.image_pairs(originals, subject.model.reconstruct(originals))
    score = subject.found.score("reconstruction-error")
    error = f" The mean squared error of a pixel is {number(score.value)}." if score else ""
    return Section(
        "Reconstructions",
        f"Images of the {subject.found.split} split, which the training never saw, above what the "
        f"model keeps of them.{error}",
        Picture(
            "reconstructions",
            f"{len(originals)} original images, their reconstructions and the difference",
            figures.to_png_bytes(figure),
        ),
    )


def samples(subject: ReportContext) -> Section | None:
    """New images."""
    model = subject.model
    if not isinstance(model, Generates):
        return None
    with fixed_noise(subject.run.recipe.seed):
        images = to_uint8(model.sample(SAMPLES)).cpu().numpy()
    figure = figures.image_grid(images, SAMPLE_COLUMNS)
    return Section(
        "New images",
        "Drawn from the model's prior, none of them chosen.",
        Picture(
            "samples", f"{SAMPLES} images sampled from the model", figures.to_png_bytes(figure)
        ),
    )


def losses(subject: ReportContext) -> Section | None:
    """How the training went."""
    records = subject.run.metrics
    if not records:
        return None
    kept = (
        "The discriminator's terms are its own. Since each side changes the other's loss, the last weights "
        "are the ones kept."
        if isinstance(subject.model, Adversarial)
        else "The weights of the step with the least total validation loss are the ones kept."
    )
    if isinstance(subject.model, LearnsActions):
        kept = f"Images are learnt first, then actions, each by terms of its own. {kept}"
    return Section(
        "Training",
        f"Every term of the loss, and their weighted total. {kept}",
        Picture(
            "losses",
            "Curves of the training and validation losses over the steps",
            figures.to_png_bytes(figures.loss_curves(records)),
        ),
    )


def numbers(subject: ReportContext) -> Section:
    """Everything that was measured, also by `disentwine evaluate` before, with the same weights."""
    known = {score.name for score in subject.found.scores}
    before = [s for s in kept_scores(subject.run) if s["name"] not in known]
    rows = [
        (
            score.name,
            number(score.value),
            "" if score.noise_floor is None else number(score.noise_floor),
            f"{score.n:,}",
            str(score.details.get("about", "")),
        )
        for score in [*subject.found.scores, *(Score(**score) for score in before)]
        if score.value is not None
    ]
    rows.append(("parameters", f"{subject.parameters:,}", "", "", "numbers that the model learns"))
    if "seconds" in subject.status:
        seconds = subject.status["seconds"]
        row = ("training-seconds", number(round(seconds, 1)), "", "", "time spent on training")
        rows.append(row)
    size = len(subject.dataset.split[subject.found.split])
    of = (
        ""
        if size == len(subject.found.indices)
        else f", {len(subject.found.indices):,} of {size:,}"
    )
    step = subject.run.checkpoint.step
    return Section(
        "Numbers",
        f"Measured on the {subject.found.split} split{of}, with the weights of step {step:,}.",
        table=Table(("score", ">value", ">noise floor", ">n", "about"), tuple(rows)),
    )


def recipe(subject: ReportContext) -> Section:
    """What to train to have it again."""
    return Section(
        "Recipe",
        "Every choice, with its defaults written out; the same text is in recipe.yaml.",
        code=subject.run.recipe.to_yaml().rstrip(),
    )


def commands(subject: ReportContext) -> Section:
    """How to have it again."""
    path, held = subject.run.path.resolve(), "holds this run"
    name = path.name
    own = Path(subject.run.recipe.data.get("path", "/"))
    if not own.expanduser().is_absolute():  # where it is found from, and so is the run
        name, held = os.path.relpath(path), f"{own} is found from"
    run, again = shlex.quote(name), shlex.quote(f"{name}-again")
    lines = [f"disentwine evaluate {run}", f"disentwine report {run}"]
    text = f"From the folder that {held}: evaluate it or write this page again."
    if subject.run.recipe.data["name"] != IN_MEMORY:
        recipe_path = shlex.quote(f"{name}/recipe.yaml")
        lines.insert(0, f"disentwine train {recipe_path} --out {again}")
        text = f"From the folder that {held}: train, evaluate and write this page again."
    return Section("Make it again", text, code="\n".join(lines))


def made_with(subject: ReportContext) -> Section:
    """The versions of what decides the numbers."""
    trained, now = dict(subject.run.checkpoint.state.get("versions", {})), versions()
    if trained == now:
        return Section("Versions", ", ".join(f"{name} {now[name]}" for name in now) + ".")
    rows = tuple((package, trained.get(package, ""), now[package]) for package in now)
    return Section(
        "Versions",
        "The page was written with other versions than the model was trained with.",
        table=Table(("package", ">training", ">page"), rows),
    )


SECTIONS: tuple[Callable[[ReportContext], Section | None], ...] = (
    interventions,
    actions,
    confusions,
    touched,
    effects,
    causes,
    adjacency,
    reconstructions,
    traversals,
    knowledge,
    samples,
    losses,
    layers,
    activity,
    numbers,
    recipe,
    commands,
    made_with,
)
