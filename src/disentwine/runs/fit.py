"""Training in memory or in a run folder, from objects or from a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

import torch

from disentwine.core.capabilities import Adversarial
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.schema import parse, schema_of
from disentwine.errors import DataError, DivergenceError, UsageError, warn
from disentwine.runs.checkpoint import checkpoint_path, checkpoint_steps, fingerprint
from disentwine.runs.init_weights import check_resets, initialise_from_run, reset_inactive
from disentwine.runs.recipe import Recipe, check_options, recipe_of, seed_problems
from disentwine.runs.recorder import MemoryRecorder, RunRecorder
from disentwine.runs.run import Run, check_run, is_run, lock_run
from disentwine.training.callbacks import RESERVED, Callback
from disentwine.training.loop import keep_freed_memory, run_updates
from disentwine.training.options import Changes, TrainingOptions
from disentwine.training.trainer import Trainer

ModelType = TypeVar("ModelType", bound=Model)

OnSave = Callable[[Model, int], None]


def fit(
    model: ModelType,
    dataset: Dataset,
    options: TrainingOptions | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
    on_save: OnSave | None = None,
    recipe: Recipe | None = None,
    **changes: Unpack[Changes],
) -> ModelType:
    """Train a model in place and return it with its best weights.

    The best weights are those of the lowest validation loss. A model with a discriminator gets the last
    ones, as its losses do not show which are best.

    With `out`, the run is a folder that survives being killed: call again with the same arguments, and
    the training resumes bit-exactly.

    Arguments:
        model: what is trained.
        dataset: its "train" split trains the model, its "validation" split selects the weights.
        options: how it is trained; by default `TrainingOptions()`.
        seed: decides the batches and the noise.
        out: the run folder; none keeps everything in memory.
        progress: show the bar, or be silent; by default a bar on a terminal, else a line now and then.
        callbacks: called by the training loop, such as loggers.
        on_save: called with the model and the step after every checkpoint, also that of an interruption;
            short for a callback.
        recipe: what the run folder keeps as its recipe; by default it is read from the objects.
        changes: single options in place of those of `options`, see `TrainingOptions`.

    >>> from disentwine import VAE, data
    >>> images = data.Pendulum(size=32)
    >>> model = fit(VAE.for_data(images, latent=4), images, steps=2, batch_size=8)
    >>> model.represent(images.images[:5]).shape
    (5, 4)
    """
    options = _checked(options, changes, seed, callbacks)
    seed = int(seed)
    for name in ("train", "validation"):
        if len(dataset.split[name]) == 0:
            raise DataError(f"the {name} split is empty: give the data set more images")
    check_options(model)
    model.check_fits(dataset)
    init_from = None if options.init_from is None else Path(options.init_from)
    if options.reset_inactive_latents:
        check_resets(model, init_from)
    for warning in _warnings(model, options):
        warn(warning)
    if out is not None and recipe is None:
        recipe = recipe_of(model, dataset, training=_as_recipe(options), seed=seed)
    data = fingerprint(dataset) if out is not None and dataset.editable else None
    keep_freed_memory()
    if init_from is not None and not (out is not None and _can_resume(Path(out))):
        initialise_from_run(model, init_from)
        if most := options.reset_inactive_latents:
            limit = None if most is True else int(most)
            reset_inactive(model, dataset, seed=seed, most=limit, silent=progress is False)
    if on_save is not None:
        callbacks = (*callbacks, _OnSave(on_save))
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng())
        stack.enter_context(_threads(options.threads))
        trainer = Trainer(model, dataset, options, seed=seed, callbacks=callbacks)
        # Nothing is written before all arguments have been checked.
        recorder: MemoryRecorder | RunRecorder
        if out is None or recipe is None:
            recorder = MemoryRecorder(trainer)
        else:
            run = stack.enter_context(lock_run(Path(out), recipe))
            stack.enter_context(_naming_the_last_checkpoint(run))
            recorder = RunRecorder(run, trainer, data=data)
        stack.callback(recorder.close)
        run_updates(trainer, recorder, progress=progress, saved_in="" if out is None else str(out))
    return model.eval()


def train_recipe(
    recipe: Recipe,
    out: Path,
    *,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Build the data set and the model of a recipe, train it in the folder `out`, and return the run.

    Arguments:
        recipe: the data set, the model and the options of the training.
        out: the run folder; an unfinished run of the same recipe is resumed.
        progress: show the bar; by default on a terminal only.
        callbacks: called by the training loop, such as `report.FiguresWhileTraining`.
    """
    check_run(out, recipe)
    dataset = recipe.build_dataset()
    with fixed_noise(recipe.seed):
        model = recipe.build_model(dataset)
    options = TrainingOptions(**recipe.training)
    fit(
        model,
        dataset,
        options,
        seed=recipe.seed,
        out=out,
        progress=progress,
        callbacks=callbacks,
        recipe=recipe,
    )
    run = Run(out)
    run.dataset = dataset
    return run


class _OnSave(Callback):
    """A function that is called after every checkpoint."""

    def __init__(self, function: OnSave) -> None:
        self.function = function

    def on_save(self, model: Model, step: int) -> None:
        self.function(model, step)


def _checked(
    options: TrainingOptions | None,
    changes: Mapping[str, Any],
    seed: int,
    callbacks: Sequence[Callback],
) -> TrainingOptions:
    """The options with some changes, as plain values; raises `UsageError` for all that is wrong."""
    values = asdict(options or TrainingOptions()) | dict(changes)
    parsed, problems = parse(schema_of(TrainingOptions), values, section="training")
    problems += seed_problems(seed) + _callback_problems(callbacks)
    if problems:
        raise UsageError("; ".join(problems))
    return replace(TrainingOptions(), **dict(parsed or ()))


def _callback_problems(callbacks: Sequence[Any]) -> list[str]:
    """What is wrong with callbacks: other objects, and names that a checkpoint cannot tell apart.

    >>> _callback_problems([print])
    ['callbacks: <built-in function print> is not a Callback object']
    """
    problems, names = [], set(RESERVED)
    for each in callbacks:
        if not isinstance(each, Callback):
            problems.append(f"callbacks: {each!r} is not a Callback object")
        elif each.name in names:
            problems.append(f"callbacks: the name '{each.name}' is taken; give each its own")
        elif "." in each.name:
            problems.append(f"callbacks: the name '{each.name}' has a dot; choose one without")
        elif each.name:
            names.add(each.name)
    return problems


def _as_recipe(options: TrainingOptions) -> dict[str, Any]:
    """The options as a recipe has them, which knows no paths."""
    return asdict(options) | {"init_from": options.init_from and str(options.init_from)}


def _warnings(model: Model, options: TrainingOptions) -> list[str]:
    """Warnings about options that make no sense for a model."""
    warnings = model.check_training(options)
    if isinstance(model, Adversarial) and options.patience is not None:
        warnings.append(
            "training.patience: has no effect, as no loss shows how good a model with a discriminator is"
        )
    return warnings


def _can_resume(out: Path) -> bool:
    """Whether there is a checkpoint, so that the run continues from its own weights."""
    return is_run(out) and bool(checkpoint_steps(Run(out).checkpoints))


@contextmanager
def _naming_the_last_checkpoint(run: Run) -> Iterator[None]:
    try:
        yield
    except DivergenceError as error:
        steps = checkpoint_steps(run.checkpoints)
        if not steps:
            raise
        last = checkpoint_path(run.checkpoints, steps[0])
        raise DivergenceError(f"{error}. The last good checkpoint is {last}") from error


@contextmanager
def _threads(n: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    if n is not None:
        torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
