"""Fit() and train_recipe(): options, folder, warm start, then the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from pydantic import StrictBool

from disentwine.core.capabilities import Adversarial, LogsScalars, VariesOneFactor
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model, check_fits
from disentwine.core.random import fixed_noise
from disentwine.core.schema import check, schema_of
from disentwine.core.types import Count, NonNegative, Positive, Threads
from disentwine.data.samplers.one_factor import with_batches_for
from disentwine.errors import DataError, DivergenceError, Interrupted, UsageError, warn
from disentwine.progress import ProgressBar
from disentwine.runs.checkpoint import checkpoint_path, checkpoint_steps
from disentwine.runs.init_weights import begin_with, check_resets, reset_inactive
from disentwine.runs.provenance import fingerprint
from disentwine.runs.recipe import NOT_IN_RECIPES, Recipe, check_options, recipe_of, seed_problems
from disentwine.runs.recorder import MemoryRecorder, Recorder, RunRecorder
from disentwine.runs.run import Run, is_run
from disentwine.runs.session import check_run, lock_run
from disentwine.training.loop import PoliteStop, keep_freed_memory
from disentwine.training.trainer import Trainer

Precision = Literal["32-true", "64-true", "bf16-mixed"]

Device = Literal["auto", "cpu", "cuda", "mps"]

ModelType = TypeVar("ModelType", bound=Model)

OnSave = Callable[[Model, int], None]

OF_LOOP = ("steps", "log_every", "save_every", "patience")

OF_TRAINER = (
    *("steps", "batch_size", "learning_rate", "final_learning_rate", "weight_decay", "clip_norm"),
    *("averaged", "precision", "device"),
)
"""Arguments of `fit` that decide when to do what, and those that decide an update."""


def fit(
    model: ModelType,
    dataset: Dataset,
    *,
    steps: Count = 3000,
    batch_size: Count = 64,
    learning_rate: Positive = 1e-3,
    final_learning_rate: Positive | None = None,
    weight_decay: NonNegative | None = None,
    clip_norm: Positive | None = None,
    averaged: Count | None = None,
    start: str | Path | None = None,
    reset_inactive_latents: StrictBool | Count | None = None,
    log_every: Count = 50,
    save_every: Count = 500,
    patience: Count | None = None,
    precision: Precision = "32-true",
    device: Device = "auto",
    threads: Threads | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool | None = None,
    on_save: OnSave | None = None,
) -> ModelType:
    """Train a model in place and return it with the weights that did best on the validation split;
    with the last ones, where it plays against a discriminator and no score tells which are best.

    With `out`, the run is a folder that survives being killed: call again with the same arguments
    and it goes on to the bit as though nothing had happened.

    Arguments:
        model: what is trained.
        dataset: its "train" split is learnt from, its "validation" split chooses the weights.
        steps: updates to make.
        batch_size: images an update.
        learning_rate: Adam's; a discriminator has one of its own.
        final_learning_rate: what it falls to in a straight line; none keeps it constant.
        weight_decay: of AdamW, by which weights shrink before every update, times the learning rate; none
            lets them be. Biases, gains and a discriminator's weights never do.
        clip_norm: largest norm of the gradient; none leaves it alone.
        averaged: updates over which weights are averaged: the average is what is validated and kept;
            none keeps the weights themselves.
        start: folder of a finished run with whose weights to begin, from here or from a folder above; none
            begins with the model's own.
        reset_inactive_latents: re-initialise latents that these weights do not use: all of them, or at
            most so many.
        log_every: updates between two records of the training loss, and of what a model wants
            watched.
        save_every: updates between two validations, each followed by a checkpoint.
        patience: stop after this many validations without a better score; none never stops early,
            and pre-training never does.
        precision: of Lightning Fabric.
        device: "auto" takes the best there is.
        threads: of the processor; none leaves torch's choice. Use 1 when several runs share a machine.
        seed: decides the batches and the noise.
        out: the run folder; none keeps everything in memory.
        progress: show the bar, or be silent; by default a bar on a terminal, else a line now and then.
        on_save: called with the model and the step after every checkpoint, also the one of an interruption.

    >>> from disentwine import VAE, data
    >>> pictures = data.Pendulum(size=32)
    >>> model = fit(VAE.for_data(pictures, latent=4), pictures, steps=2, batch_size=8)
    >>> model.represent(pictures.images[:5]).shape
    (5, 4)
    """
    training: dict[str, Any] = {
        "steps": steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "final_learning_rate": final_learning_rate,
        "weight_decay": weight_decay,
        "clip_norm": clip_norm,
        "averaged": averaged,
        "start": start,
        "reset_inactive_latents": reset_inactive_latents,
        "log_every": log_every,
        "save_every": save_every,
        "patience": patience,
        "precision": precision,
        "device": device,
        "threads": threads,
    }
    training, problems = check(schema_of(fit, without=NOT_IN_RECIPES), training, section="training")
    problems += seed_problems(seed)
    if problems:
        raise UsageError("; ".join(problems))
    # From here on as they were checked: what was a text, or a number of NumPy, is a plain number.
    steps, log_every, save_every, patience = itemgetter(*OF_LOOP)(training)
    start, reset_inactive_latents, threads = itemgetter(
        "start", "reset_inactive_latents", "threads"
    )(training)
    seed = int(seed)
    for name in ("train", "validation"):
        if len(dataset.split[name]) == 0:
            raise DataError(f"the {name} split is empty: give the data set more images")
    check_options(model)
    check_fits(model, dataset)
    if reset_inactive_latents:
        check_resets(model, start)
    _check_suits(model, batch_size=training["batch_size"], patience=patience)
    recipe = recipe_of(model, dataset, training=training, seed=seed) if out is not None else None
    data = fingerprint(dataset) if out is not None else None
    keep_freed_memory()
    if start is not None and not (out is not None and _begun(Path(out))):
        begin_with(model, Path(start))
        if reset_inactive_latents:
            most = None if reset_inactive_latents is True else reset_inactive_latents
            reset_inactive(model, dataset, seed=seed, most=most, silent=progress is False)
    dataset = with_batches_for(model, dataset)
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng())
        stack.enter_context(_threads(threads))
        trainer = Trainer(
            model,
            dataset,
            **{name: training[name] for name in OF_TRAINER},
            seed=seed,
            data=data,
        )
        # Nothing is written until all that can be wrong with the arguments has been found.
        run = None
        if out is not None and recipe is not None:
            run = stack.enter_context(lock_run(Path(out), recipe))
            stack.enter_context(_naming_the_last_checkpoint(run))
        recorder: Recorder = MemoryRecorder(trainer) if run is None else RunRecorder(run, trainer)
        stack.callback(recorder.close)
        _warn_of_few(steps, model, trainer)
        stop = stack.enter_context(PoliteStop())
        bar = stack.enter_context(
            ProgressBar(type(model).__name__, total=steps, done=trainer.step, show=progress)
        )

        def save() -> None:
            recorder.save()
            if on_save is not None:
                with torch.random.fork_rng(), trainer.as_kept():
                    on_save(model.eval(), trainer.step)

        def validate_and_save() -> None:
            scores = trainer.validate()
            trainer.note_score(scores["loss"])
            recorder.record("validation", scores)
            trainer.name_actions()
            save()

        if trainer.best is None:
            _watch(model, recorder)
            validate_and_save()
        while trainer.step < steps and (patience is None or trainer.stale < patience):
            trainer.update()
            shown = None
            if trainer.step % log_every == 0 or trainer.ends_stage:
                shown = trainer.take_means()
                recorder.record("train", shown)
                _watch(model, recorder)
            due = trainer.step % save_every == 0 or trainer.step == steps
            if due:
                validate_and_save()
            bar.advance({"loss": shown["loss"]} if shown else None)
            if stop.requested is not None:
                if not due:
                    save()
                raise Interrupted(
                    f"stopped at step {trainer.step} of {steps}"
                    + (f"; saved in {run.path}, run the same command to go on" if run else ""),
                    signal_number=stop.requested,
                )
        recorder.finish()
    return model.eval()


def _begun(out: Path) -> bool:
    """Whether there is something to go on from, so that no start is needed any more."""
    return is_run(out) and bool(checkpoint_steps(Run(out).checkpoints))


def _warn_of_few(steps: int, model: Model, trainer: Trainer) -> None:
    """Tell whoever trains for so few steps that a part of the training never comes."""
    if steps <= trainer.pretraining:
        warn(
            f"training.steps={steps} are no more than model.pretrain_steps={trainer.pretraining}: "
            f"images are learnt, but no actions; give more steps, or fewer pretrain_steps"
        )
    from_step = getattr(getattr(model, "rollout", None), "from_step", 0)
    if steps <= from_step:
        warn(
            f"training.steps={steps} are no more than model.rollout.from_step={from_step}: "
            f"training is single-step without rollouts; give more steps, or an earlier from_step"
        )
    changing = getattr(model, "warm_up_steps", None) or 0
    if steps < changing:
        falls = (getattr(model, "start_beta", None) or 0) > getattr(model, "beta", 1)
        outcome = "never falls to its last weight" if falls else "never counts in full"
        warn(
            f"training.steps={steps} are fewer than model.warm_up_steps={changing}: "
            f"the divergence {outcome}; give more steps, or a shorter warm-up"
        )


def _watch(model: Model, recorder: Recorder) -> None:
    values = model.log_scalars() if isinstance(model, LogsScalars) else {}
    if values:
        recorder.record("watched", values)


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


def _check_suits(model: object, *, batch_size: int, patience: int | None) -> None:
    """Refuse, or tell of, options of training that make no sense for a model."""
    if isinstance(model, VariesOneFactor) and batch_size < 2:
        raise UsageError("training.batch_size: give 2 or more: in one image nothing varies")
    if isinstance(model, Adversarial) and patience is not None:
        warn(
            "training.patience: no loss says how good a model with a discriminator is; it is not stopped"
        )


def train_recipe(
    recipe: Recipe,
    out: Path,
    *,
    progress: bool | None = None,
    hook: Callable[[Path, Dataset], OnSave] | None = None,
) -> Run:
    """Build what a recipe names, train it in the folder `out`, and return the run.

    Arguments:
        recipe: what to train on what.
        out: the run folder; an unfinished run of the same recipe is resumed.
        progress: show the bar; by default on a terminal only.
        hook: makes what is called after every checkpoint, such as `report.figures_while_training`.
    """
    check_run(out, recipe)
    dataset = recipe.build_dataset()
    with fixed_noise(recipe.seed):
        model = recipe.build_model(dataset)
    on_save = hook(out, dataset) if hook is not None else None
    options = {**recipe.training, "seed": recipe.seed, "progress": progress, "on_save": on_save}
    fit(model, dataset, **options, out=out)
    run = Run(out)
    run.dataset = dataset
    return run
