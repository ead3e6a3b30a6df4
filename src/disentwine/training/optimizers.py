"""Optimized losses, each with its own Adam; parameters of model and discriminator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from disentwine.core.capabilities import DISCRIMINATOR, Adversarial
from disentwine.core.model import Model
from disentwine.losses.schedules import linear
from disentwine.training.options import TrainingOptions

ADAM = {"step", "exp_avg", "exp_avg_sq"}
"""Adam's state of each parameter."""


@dataclass
class OptimizedLoss:
    """A loss of a model, and the Adam that minimises it: the model's own loss, or its discriminator's.

    Arguments:
        name: the model's method that computes the loss.
        optimizer: its Adam; Fabric's wrapper of it after `Fabric.setup`.
        learning_rate: Adam's at the start.
        final_learning_rate: the learning rate falls linearly to this value.
        prefix: of its names in logs and checkpoints.
        stream: of its batches.
        updates: in one step of training.
    """

    name: str
    optimizer: Any
    learning_rate: float
    final_learning_rate: float
    prefix: str = ""
    stream: int = 0
    updates: int = 1

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def named(self, values: Mapping[str, float]) -> dict[str, float]:
        """Loss terms under their names in a log."""
        return {f"{self.prefix}{name}": value for name, value in values.items()}

    def update(self, *, step: int, steps: int) -> None:
        """Update the parameters by their gradients, then clear these.

        Arguments:
            step: of the training, which decides the learning rate.
            steps: in the whole training.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = linear(
                step, start=self.learning_rate, end=self.final_learning_rate, steps=steps
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """Adam's moments, under a checkpoint's names."""
        moments = optimizer_tensors(self.optimizer.optimizer)
        return {f"{self.prefix}adam.{name}": value for name, value in moments.items()}

    def settings(self) -> dict[str, Any]:
        """Adam's settings, under a checkpoint's name."""
        return {f"{self.prefix}optimiser": self.optimizer.state_dict()["param_groups"]}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> set[str]:
        """Take back what `tensors` and `settings` returned; returns the names of its tensors."""
        start = f"{self.prefix}adam."
        used = {name for name in tensors if name.startswith(start)}
        restore_optimizer(
            self.optimizer.optimizer,
            {name.removeprefix(start): tensors[name] for name in used},
            state[f"{self.prefix}optimiser"],
        )
        return used


def optimized_losses(model: Model, options: TrainingOptions) -> list[OptimizedLoss]:
    """The model's loss, then the discriminator's if there is one, whose learning rate falls in
    proportion."""
    rate = options.learning_rate
    final = rate if options.final_learning_rate is None else options.final_learning_rate
    weight_decay = options.weight_decay or 0.0
    adam: torch.optim.Adam = torch.optim.AdamW(
        _decayed(own_parameters(model)) if weight_decay else own_parameters(model),
        lr=rate,
        betas=model.betas,
        weight_decay=weight_decay,
        fused=True,
    )
    losses = [OptimizedLoss("loss", adam, rate, final)]
    if isinstance(model, Adversarial):
        own_rate, betas, updates = model.discriminator_training
        adam = torch.optim.Adam(
            discriminator_parameters(model), lr=own_rate, betas=betas, fused=True
        )
        losses.append(
            OptimizedLoss(
                "discriminator_loss",
                adam,
                own_rate,
                own_rate * (final / rate),
                prefix=f"{DISCRIMINATOR}_",
                stream=1,
                updates=updates,
            )
        )
    return losses


def _decayed(parameters: Iterable[nn.Parameter]) -> list[dict[str, Any]]:
    """Groups of parameters: weight decay applies to matrices and kernels, not to biases and gains."""
    parameters = list(parameters)
    return [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def discriminator_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that `discriminator_loss` trains; none where the model has no discriminator."""
    if not isinstance(model, Adversarial):
        return []
    return [p for p in model.get_submodule(DISCRIMINATOR).parameters() if p.requires_grad]


def own_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that `loss` trains: all but the discriminator's."""
    discriminator = set(discriminator_parameters(model))
    return [p for p in model.parameters() if p.requires_grad and p not in discriminator]


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Inside, these parameters get no gradients; gradients still pass through them.

    >>> layer, x = nn.Linear(2, 1), torch.zeros(1, 2, requires_grad=True)
    >>> with frozen(layer.parameters()): layer(x).sum().backward()
    >>> layer.weight.grad is None, x.grad is None, layer.weight.requires_grad
    (True, False, True)
    """
    touched = [p for p in parameters if p.requires_grad]
    for parameter in touched:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in touched:
            parameter.requires_grad_(True)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's tensors under flat names, "<parameter>.<quantity>"."""
    return {
        f"{index}.{quantity}": value
        for index, quantities in optimizer.state_dict()["state"].items()
        for quantity, value in quantities.items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], settings: list[dict[str, Any]]
) -> None:
    """The inverse of `optimizer_tensors`; moments take the memory layout of their parameters.

    Raises `ValueError` where the tensors are not those of an Adam over these parameters.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, quantity = name.partition(".")
        if not index.isdecimal() or int(index) >= len(parameters):
            raise ValueError(f"'{name}' belongs to no parameter")
        like = parameters[int(index)]
        shape = torch.Size() if quantity == "step" else like.shape
        if value.shape != shape:
            raise ValueError(f"'{name}' has shape {tuple(value.shape)}, not {tuple(shape)}")
        if not value.isfinite().all():
            raise ValueError(f"'{name}' holds NaN or infinity")
        if value.shape == like.shape:
            value = torch.empty_like(like, dtype=value.dtype).copy_(value)
        state.setdefault(int(index), {})[quantity] = value
    for parameter, quantities in state.items():
        if quantities.keys() != ADAM:
            raise ValueError(f"the moments of parameter {parameter} are not {sorted(ADAM)}")
    optimizer.load_state_dict({"state": state, "param_groups": settings})
