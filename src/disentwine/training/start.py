"""Beginning with the weights of a finished run."""

from __future__ import annotations

from pathlib import Path

from disentwine.contracts.model import Model
from disentwine.errors import UsageError, warn
from disentwine.models import MODELS
from disentwine.training.checkpoint import load_weights, misfits
from disentwine.training.recipe import arguments_of
from disentwine.training.run import Run, differences, is_run

SHOWN = 3
"""Weights that do not fit and are told one by one: of another network hardly any do."""


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
    names = {cls: name for name, cls in MODELS.items()}
    theirs, ours = run.recipe.model["name"], names.get(type(model), type(model).__name__)
    if theirs != ours:
        return f"it holds a {theirs}, this is a {ours}"
    options = differences(run.recipe.model, {"name": ours, **arguments_of(model)}, "model.")
    return f"both are {ours}, but {'; '.join(options) or 'of other images'}"
