"""Initial weights from a finished run; re-initialised inactive latents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import torch

from disentwine.core.capabilities import ResetsLatents
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.errors import UsageError, warn
from disentwine.models import MODELS
from disentwine.nn.images import to_unit_range
from disentwine.runs.checkpoint import load_weights, misfits
from disentwine.runs.recipe import arguments_of
from disentwine.runs.run import Run, is_run, recipe_diff
from disentwine.runs.upgrade import renamed, upgrade_mapping

SHOWN = 3
"""Most weights that an error names: with another network hardly any fit."""

IMAGES = 1000
"""Images by which inactive latents are found."""


def initialise_from_run(model: Model, folder: Path) -> None:
    """Load the weights that a finished run kept.

    Arguments:
        model: whose weights are replaced.
        folder: of the run, relative to the current folder or one above it.
    """
    run = Run(_found(folder))
    if not run.finished:
        raise UsageError(
            f"training.init_from: the training in {folder} is not finished; finish it first"
        )
    weights = run.checkpoint.weights
    if problems := misfits(model, weights):
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise UsageError(
            f"training.init_from: the weights in {folder} do not fit: {_compared(run, model)} "
            f"({'; '.join(problems[:SHOWN])}{more}). Name a run of the same model, or give this one "
            f"the options of that"
        )
    load_weights(model, weights, source=folder)


def check_resets(model: Model, init_from: Path | None) -> None:
    """Refuse models without inactive latents to reset, before anything is read."""
    if init_from is None:
        raise UsageError(
            "training.reset_inactive_latents: needs training.init_from, a run with inactive latents"
        )
    if not isinstance(model, ResetsLatents):
        raise UsageError(
            f"training.reset_inactive_latents: a {type(model).__name__} has no latents that can be "
            f"re-initialised"
        )


def reset_inactive(
    model: Model,
    dataset: Dataset,
    *,
    seed: int,
    most: int | None = None,
    silent: bool = False,
) -> None:
    """Re-initialise latents that are inactive on training images; warns where there are none.

    Arguments:
        model: one that resets latents.
        dataset: its "train" split is used.
        seed: of the new weights.
        most: most latents to reset; none resets all inactive ones.
        silent: do not print which ones.
    """
    images = torch.from_numpy(dataset.images[evenly_spaced(dataset.split["train"], IMAGES)])
    weight = next(model.parameters())
    try:
        with fixed_noise(seed):
            reset = cast(ResetsLatents, model).reset_inactive_latents(
                to_unit_range(images).to(weight), most=most
            )
    except UsageError as error:
        raise UsageError(
            f"training.reset_inactive_latents: {error}; name a run that learned something in "
            f"training.init_from"
        ) from error
    if not reset:
        warn("training.reset_inactive_latents: all latents of the run are active, none was reset")
    elif not silent:
        numbers = ", ".join(str(latent) for latent in reset)
        print(f"disentwine: inactive latents re-initialised: {numbers}", file=sys.stderr)


def _found(folder: Path) -> Path:
    """A recipe names a run relative to where it was first trained, which may be a folder above."""
    above = () if folder.is_absolute() else Path.cwd().parents
    for place in (Path(), *above):
        if is_run(place / folder):
            if place != Path():
                warn(f"training.init_from: there is no run {folder} here; {place / folder} is used")
            return place / folder
    raise UsageError(
        f"training.init_from: {folder} is not a run folder; name that of a finished training, with its "
        f"full path if it is elsewhere"
    )


def _compared(run: Run, model: Model) -> str:
    """Both models, and the options that may be why the weights of one do not fit the other."""
    names = {cls: name for name, cls in MODELS.items()}
    theirs, ours = run.recipe.model["name"], names.get(type(model), type(model).__name__)
    ignored = [renamed(path, "") for path in model.not_in_weights]
    options = upgrade_mapping(arguments_of(model), ignored)
    shared = {key: value for key, value in run.recipe.model.items() if key in options}
    shared = upgrade_mapping(shared, ignored)
    found = recipe_diff(shared, {key: options[key] for key in shared}, "model.")
    who = f"both are {ours}, but" if theirs == ours else f"it holds a {theirs}, this is a {ours};"
    return (
        f"{who} {'; '.join(found) or ('of other images' if theirs == ours else 'other networks')}"
    )
