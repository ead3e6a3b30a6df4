"""One side of a training: the parameters that one loss updates, and the Adam that updates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from disentwine.core.capabilities import (
    DISCRIMINATOR,
    Adversarial,
    discriminator_parameters,
    own_parameters,
)
from disentwine.core.model import Model
from disentwine.losses.schedules import linear
from disentwine.training.state import optimiser_tensors, restore_optimiser


@dataclass
class Player:
    """The model itself, or the discriminator it plays against.

    Arguments:
        loss: name of the model's method that the player minimises.
        optimiser: its Adam; Fabric's wrapper of it once that is set up.
        learning_rate: Adam's at the start.
        final_learning_rate: what it falls to in a straight line.
        prefix: what its names begin with in logs and checkpoints.
        stream: of its batches.
        turns: updates in a step of training.
    """

    loss: str
    optimiser: Any
    learning_rate: float
    final_learning_rate: float
    prefix: str = ""
    stream: int = 0
    turns: int = 1

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimiser.param_groups for p in group["params"]]

    def named(self, values: Mapping[str, float]) -> dict[str, float]:
        """Terms under the names that a log has them by."""
        return {f"{self.prefix}{name}": value for name, value in values.items()}

    def move(self, *, step: int, steps: int) -> None:
        """Step number `step` of Adam; the gradient is used up."""
        for group in self.optimiser.param_groups:
            group["lr"] = linear(
                step, start=self.learning_rate, end=self.final_learning_rate, steps=steps
            )
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """What Adam remembers, under a checkpoint's names."""
        moments = optimiser_tensors(self.optimiser.optimizer)
        return {f"{self.prefix}adam.{name}": value for name, value in moments.items()}

    def settings(self) -> dict[str, Any]:
        """Adam's settings, under a checkpoint's name."""
        return {f"{self.prefix}optimiser": self.optimiser.state_dict()["param_groups"]}

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> set[str]:
        """Take back what `tensors` and `settings` gave; returns the names that were used."""
        start = f"{self.prefix}adam."
        used = {name for name in tensors if name.startswith(start)}
        restore_optimiser(
            self.optimiser.optimizer,
            {name.removeprefix(start): tensors[name] for name in used},
            state[f"{self.prefix}optimiser"],
        )
        return used


def players_of(
    model: Model,
    *,
    learning_rate: float,
    final_learning_rate: float | None,
    weight_decay: float = 0.0,
) -> list[Player]:
    """The model, and after it the discriminator where there is one; its learning rate falls alike."""
    final = learning_rate if final_learning_rate is None else final_learning_rate
    adam: torch.optim.Adam = torch.optim.AdamW(
        _shrinking(own_parameters(model)) if weight_decay else own_parameters(model),
        lr=learning_rate,
        betas=model.betas,
        weight_decay=weight_decay,
        fused=True,
    )
    players = [Player("loss", adam, learning_rate, final)]
    if isinstance(model, Adversarial):
        rate, betas, updates = model.discriminator_training
        adam = torch.optim.Adam(discriminator_parameters(model), lr=rate, betas=betas, fused=True)
        players.append(
            Player(
                "discriminator_loss",
                adam,
                rate,
                rate * (final / learning_rate),
                prefix=f"{DISCRIMINATOR}_",
                stream=1,
                turns=updates,
            )
        )
    return players


def _shrinking(parameters: Iterable[nn.Parameter]) -> list[dict[str, Any]]:
    """Groups of parameters: matrices and kernels shrink, biases and gains do not."""
    parameters = list(parameters)
    return [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
