"""How a model is trained: the options of `fit` and of recipes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import StrictBool

from disentwine.core.types import Count, NonNegative, Positive, Threads

Precision = Literal["32-true", "64-true", "bf16-mixed"]

Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a model is trained; the `training` section of a recipe.

    `fit` checks the values, so that they may also be NumPy numbers.

    Arguments:
        steps: updates in the whole training.
        batch_size: images per update.
        learning_rate: of Adam; a discriminator has one of its own.
        final_learning_rate: the learning rate falls linearly to this value; none keeps it constant.
        weight_decay: of AdamW, decoupled from the gradient; none disables it. It never applies to
            biases, gains and a discriminator's weights.
        clip_norm: largest norm of the gradient; none disables clipping.
        weight_averaging: updates over which weights are averaged. The average is validated and kept;
            none keeps the weights themselves.
        init_from: folder of a finished run whose weights the training starts with, relative to the
            current folder or one above it; none starts with the model's own.
        reset_inactive_latents: re-initialise the inactive latents of these weights: all of them, or
            at most this many.
        log_every: updates between two records of the training loss and of the scalars that a model
            logs.
        save_every: updates between two validations, each followed by a checkpoint.
        patience: stop after this many validations without a better score; none never stops early.
            Only validations of the last stage of a training plan count.
        precision: of Lightning Fabric.
        device: "auto" chooses the fastest available one.
        threads: CPU threads; none leaves torch's choice. Use 1 when several runs share a machine.

    >>> TrainingOptions(steps=100).learning_rate
    0.001
    """

    steps: Count = 3000
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    final_learning_rate: Positive | None = None
    weight_decay: NonNegative | None = None
    clip_norm: Positive | None = None
    weight_averaging: Count | None = None
    init_from: str | Path | None = None
    reset_inactive_latents: StrictBool | Count | None = None
    log_every: Count = 50
    save_every: Count = 500
    patience: Count | None = None
    precision: Precision = "32-true"
    device: Device = "auto"
    threads: Threads | None = None


class Changes(TypedDict, total=False):
    """The same options as keywords of `fit`, for editors and type checkers."""

    steps: Count
    batch_size: Count
    learning_rate: Positive
    final_learning_rate: Positive | None
    weight_decay: NonNegative | None
    clip_norm: Positive | None
    weight_averaging: Count | None
    init_from: str | Path | None
    reset_inactive_latents: StrictBool | Count | None
    log_every: Count
    save_every: Count
    patience: Count | None
    precision: Precision
    device: Device
    threads: Threads | None
