"""Checkpoint in memory, load_weights, Adam tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from disentwine.errors import CheckpointError

WEIGHTS, TRAINING, STATE = "weights.safetensors", "training.safetensors", "state.json"

ADAM = {"step", "exp_avg", "exp_avg_sq"}
"""What Adam remembers of each parameter."""


@dataclass
class Checkpoint:
    """Everything that decides how training goes on.

    Arguments:
        step: updates made so far; it is also the sampler's position.
        weights: the model's parameters and buffers.
        training: the optimiser's tensors and the generators' states.
        state: the rest, as JSON: the optimiser's settings, the best score so far, the log's length.
    """

    step: int
    weights: dict[str, Tensor]
    training: dict[str, Tensor]
    state: dict[str, Any] = field(default_factory=dict)


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: Path | str) -> None:
    """Put weights into a model, refusing wrong names, wrong shapes and values that are not finite."""
    if problems := misfits(model, weights):
        raise CheckpointError(f"{source} does not fit the model: {'; '.join(problems)}")
    model.load_state_dict(dict(weights))


def misfits(model: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Why weights cannot be put into a model, a reason for each tensor."""
    expected = model.state_dict()
    problems = [f"'{name}' is missing" for name in expected.keys() - weights.keys()]
    problems += [f"'{name}' is not part of the model" for name in weights.keys() - expected.keys()]
    for name in sorted(expected.keys() & weights.keys()):
        if weights[name].shape != expected[name].shape:
            shapes = f"{tuple(weights[name].shape)}, not {tuple(expected[name].shape)}"
            problems.append(f"'{name}' has shape {shapes}")
        elif weights[name].is_floating_point() and not weights[name].isfinite().all():
            problems.append(f"'{name}' holds NaN or infinity")
    return sorted(problems)


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors under flat names, "<parameter>.<quantity>"."""
    return {
        f"{index}.{quantity}": value
        for index, quantities in optimiser.state_dict()["state"].items()
        for quantity, value in quantities.items()
    }


def restore_optimiser(
    optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], settings: list[dict[str, Any]]
) -> None:
    """The inverse of `optimiser_tensors`; moments take the memory layout of their parameters.

    Raises `ValueError` where the tensors are not those of an Adam over these parameters.
    """
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
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
    optimiser.load_state_dict({"state": state, "param_groups": settings})
