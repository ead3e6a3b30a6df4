"""Beginning with the weights of a finished run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import cast

import torch

from disentwine.core.capabilities import ResetsLatents
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.data.splits import evenly_spaced
from disentwine.errors import UsageError, warn
from disentwine.models import MODELS
from disentwine.nn.images import to_unit_range
from disentwine.runs.recipe import arguments_of
from disentwine.runs.run import Run, is_run
from disentwine.runs.session import differences
from disentwine.training.state import load_weights, misfits

SHOWN = 3
"""Weights that do not fit and are told one by one: of another network hardly any do."""

WITHOUT_WEIGHTS = (
    r"model\.(\w*beta|lambda_\w+|\w+_weight|\w+_rate|gamma|alpha|invariance|estimator"
    r"|warm_up_steps|capacity) "
)
"""Options that no weight depends on: how much losses count."""

IMAGES = 1000
"""By which it is told what units say."""


def begin_with(model: Model, start: Path) -> None:
    """Put the weights that a finished run kept into a model.

    Arguments:
        model: whose weights are replaced.
        start: the run folder, from here or from a folder above.
    """
    run = Run(_found(start))
    if not run.finished:
        raise UsageError(
            f"training.start: the training in {start} is not finished; finish it first"
        )
    weights = run.checkpoint.weights
    if problems := misfits(model, weights):
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise UsageError(
            f"training.start: the weights in {start} do not fit: {_compared(run, model)} "
            f"({'; '.join(problems[:SHOWN])}{more}). Name a run of the same model, or give this one "
            f"the options of that"
        )
    load_weights(model, weights, source=start)


def check_resets(model: Model, start: str | Path | None) -> None:
    """Refuse what cannot be revived, before anything is read."""
    if start is None:
        raise UsageError(
            "training.reset_inactive_latents: needs training.start, a run some of whose units are unused"
        )
    if not isinstance(model, ResetsLatents):
        raise UsageError(
            f"training.reset_inactive_latents: a {type(model).__name__} has no units that can be made anew"
        )


def reset_inactive(
    model: Model,
    dataset: Dataset,
    *,
    seed: int,
    most: int | None = None,
    silent: bool = False,
) -> None:
    """Make units anew that say nothing of training images, and tell which; warns where all are in use.

    Arguments:
        model: one that *revives*.
        dataset: whose "train" split is looked at.
        seed: of what they become.
        most: reset_inactive_latents no more than so many.
        silent: do not tell.
    """
    images = torch.from_numpy(dataset.images[evenly_spaced(dataset.split["train"], IMAGES)])
    weight = next(model.parameters())
    with fixed_noise(seed):
        revived = cast(ResetsLatents, model).reset_inactive_latents(
            to_unit_range(images).to(weight), most=most
        )
    if not revived:
        warn("training.reset_inactive_latents: the start uses all of its units, none was made anew")
    elif not silent:
        numbers = ", ".join(str(unit) for unit in revived)
        print(f"disentwine: units {numbers} of the code are made anew", file=sys.stderr)


def _found(start: Path) -> Path:
    """A recipe names a run as seen from where it was first trained, which may be a folder above."""
    above = () if start.is_absolute() else Path.cwd().parents
    for folder in (Path(), *above):
        if is_run(folder / start):
            if folder != Path():
                warn(f"training.start: there is no run {start} here; {folder / start} is taken")
            return folder / start
    raise UsageError(
        f"training.start: {start} is not a run folder; name that of a finished training, with its "
        f"full path where it lies elsewhere"
    )


def _compared(run: Run, model: Model) -> str:
    """Which models they are, and which options may be why the weights of one do not fit the other."""
    names = {cls: name for name, cls in MODELS.items()}
    theirs, ours = run.recipe.model["name"], names.get(type(model), type(model).__name__)
    options = arguments_of(model)
    shared = {key: value for key, value in run.recipe.model.items() if key in options}
    found = differences(shared, {key: options[key] for key in shared}, "model.")
    found = [line for line in found if not re.match(WITHOUT_WEIGHTS, line)]
    who = f"both are {ours}, but" if theirs == ours else f"it holds a {theirs}, this is a {ours};"
    return (
        f"{who} {'; '.join(found) or ('of other images' if theirs == ours else 'other networks')}"
    )
