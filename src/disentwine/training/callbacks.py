"""Callbacks, the content of a checkpoint, the moving average of weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from disentwine.core.capabilities import DISCRIMINATOR
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model

SNAPSHOTS = 100
"""Most updates whose weights enter an average; more take time and do not improve it."""


@dataclass
class Checkpoint:
    """Everything that an exact continuation of a training needs.

    Arguments:
        step: updates so far, which is also the position of the samplers.
        weights: the model's parameters and buffers.
        training: tensors of the optimizers and callbacks, and states of the random generators.
        state: the rest, as JSON: optimizer settings, the best score so far, the log's length.
    """

    step: int
    weights: dict[str, Tensor]
    training: dict[str, Tensor]
    state: dict[str, Any] = field(default_factory=dict)


class Callback:
    """Base class of callbacks: the training loop calls the events that a subclass overrides.

    Random numbers that an event draws do not change the training. State that must survive an
    interruption is saved in every checkpoint (`tensors`, `state`) under the callback's `name`, and
    restored from it (`restore`). Updates and log records after the last checkpoint are repeated when
    a killed training is resumed, with equal values.

    A logger of a tracking service, such as Weights & Biases:

        class WandbLogger(Callback):
            def on_begin(self, model, dataset):
                self.run = wandb.init(project="disentangling", resume="allow", id="pendulum-0")

            def on_log(self, step, kind, values):
                self.run.log({f"{kind}/{name}": value for name, value in values.items()}, step=step)

            def on_end(self, model, step):
                self.run.finish()

    Attributes:
        name: unique among the callbacks of a training, without a dot; needed where there is state.

    >>> from disentwine import VAE, data, fit
    >>> class PrintLosses(Callback):
    ...     def on_log(self, step, kind, values):
    ...         print(kind, step, sorted(values))
    >>> images = data.Pendulum(size=32)
    >>> _ = fit(VAE.for_data(images), images, steps=1, log_every=1, callbacks=[PrintLosses()])
    validation 0 ['kl', 'loss', 'reconstruction']
    train 1 ['kl', 'loss', 'reconstruction']
    validation 1 ['kl', 'loss', 'reconstruction']
    """

    name: ClassVar[str] = ""

    def on_begin(self, model: Model, dataset: Dataset) -> None:
        """Before the first update of this process, after a checkpoint was restored."""

    def on_update(self, step: int) -> None:
        """After update number `step`, counted from 1."""

    def on_log(self, step: int, kind: str, values: Mapping[str, float]) -> None:
        """For each record of the log.

        Arguments:
            step: updates so far.
            kind: "train" (mean losses since the last record), "validation", or "watched" (the scalars
                that a model logs).
            values: by name.
        """

    def on_validate(self, step: int, scores: Mapping[str, float]) -> None:
        """After a validation, with the mean of every loss term."""

    def on_save(self, model: Model, step: int) -> None:
        """After a checkpoint; the model is in evaluation mode, with the weights that are kept.

        State that changes here is part of the next checkpoint only. An interrupted training also saves
        between validations.
        """

    def on_end(self, model: Model, step: int) -> None:
        """After the last update; the model has its best weights. Not after an interruption."""

    def tensors(self) -> Mapping[str, Tensor]:
        """State to save as tensors."""
        return {}

    def state(self) -> Mapping[str, Any]:
        """State to save as JSON."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take back what `tensors` and `state` returned; raises `ValueError` where it does not fit."""


RESERVED = {"weights", "adam", f"{DISCRIMINATOR}_adam", "generator"}
"""Names in a checkpoint that belong to the training itself, and that no other callback may have."""


class Average(Callback):
    r"""Moving average of a model's weights:
    $\bar\theta_t = \bar\theta_{t-1} + \frac{1}{\min(t, N)} (\theta_t - \bar\theta_{t-1})$,
    the mean of the first N updates, then an exponential average over about the last N.

    For large N only every N/100th update enters. Running statistics of batch normalisation are
    averaged as weights are; integers are copied.

    Reference: Acceleration of stochastic approximation by averaging, B. Polyak and A. Juditsky, 1992.

    Arguments:
        model: whose weights are averaged.
        updates: N.

    >>> model = nn.Linear(1, 1)
    >>> average = Average(model, updates=2)
    >>> for t, value in enumerate((1.0, 3.0, 4.0), start=1):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     average.update(t)
    >>> average.weights["weight"].item()  # (1 + 3) / 2, then half way to 4
    3.0
    """

    name: ClassVar[str] = "weights"

    def __init__(self, model: nn.Module, *, updates: int) -> None:
        self.model, self.updates = model, updates
        self.every = max(1, updates // SNAPSHOTS)
        self.weights = _clones(model)

    @torch.no_grad()
    def update(self, t: int) -> None:
        """Include the weights after update t, counted from 1 where the average starts."""
        if t % self.every:
            return
        current = self.model.state_dict()
        real = [name for name, value in current.items() if value.is_floating_point()]
        torch._foreach_lerp_(
            [self.weights[name] for name in real],
            [current[name] for name in real],
            self.every / min(t, self.updates),
        )
        for name in current.keys() - real:
            self.weights[name].copy_(current[name])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights; outside, its own.

        Integer buffers that change inside, such as the matching of latent actions to names, are kept.
        """
        own = _clones(self.model)
        _put(self.weights, into=self.model)
        try:
            yield
        finally:
            for name, value in self.model.state_dict().items():
                if not value.is_floating_point():
                    self.weights[name].copy_(value)
            _put(own, into=self.model)

    def tensors(self) -> Mapping[str, Tensor]:
        """The model's own weights: a checkpoint has the average in their place."""
        return self.model.state_dict()

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Take the average from the model, where a checkpoint put it, and give the own weights back."""
        shapes = {name: value.shape for name, value in self.model.state_dict().items()}
        if {name: value.shape for name, value in tensors.items()} != shapes:
            raise ValueError("the trained weights beside their average do not fit the model")
        if not all(value.isfinite().all() for value in tensors.values()):
            raise ValueError("the trained weights beside their average hold NaN or infinity")
        self.weights = _clones(self.model)
        _put(tensors, into=self.model)


def _clones(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def _put(weights: Mapping[str, Tensor], *, into: nn.Module) -> None:
    with torch.no_grad():
        for name, value in into.state_dict().items():
            value.copy_(weights[name])
