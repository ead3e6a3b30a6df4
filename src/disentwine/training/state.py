"""The state of a training in memory; loading of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from disentwine.errors import CheckpointError

WEIGHTS, TRAINING, STATE = "weights.safetensors", "training.safetensors", "state.json"


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


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: Path | str) -> None:
    """Load weights into a model; refuses wrong names, wrong shapes and values that are not finite."""
    if problems := misfits(model, weights):
        raise CheckpointError(f"{source} does not fit the model: {'; '.join(problems)}")
    model.load_state_dict(dict(weights))


def misfits(model: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Why weights cannot be loaded into a model, a reason for each tensor."""
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
