"""Checkpoints: safetensors and JSON with digests, written whole, verified before use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from disentwine.errors import CheckpointError
from disentwine.training.storage import (
    canonical_json,
    remove_folder,
    sha256,
    sweep_half_written,
    write_folder_atomically,
)

FORMAT = 1
WEIGHTS, TRAINING, STATE = "weights.safetensors", "training.safetensors", "state.json"


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


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def checkpoint_steps(folder: Path) -> list[int]:
    """Steps of the checkpoints in a folder, newest first."""
    return sorted((int(path.name[5:]) for path in folder.glob("step-????????")), reverse=True)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write one checkpoint; it appears complete or not at all."""
    files = {
        WEIGHTS: _serialise(checkpoint.weights),
        TRAINING: _serialise(checkpoint.training),
    }
    state = {
        "format": FORMAT,
        "step": checkpoint.step,
        "files": {name: {"sha256": sha256(content)} for name, content in files.items()},
        **checkpoint.state,
    }
    files[STATE] = canonical_json({**state, "digest": sha256(canonical_json(state))})
    path = checkpoint_path(folder, checkpoint.step)
    write_folder_atomically(path, files)
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, refusing one that is not to the bit what was saved."""
    state = _verified_state(path / STATE)
    weights, training = (
        _deserialise(path / name, state["files"][name]["sha256"]) for name in (WEIGHTS, TRAINING)
    )
    return Checkpoint(state["step"], weights, training, state)


def load_newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is intact, and why each newer one was refused."""
    refusals: list[str] = []
    for step in checkpoint_steps(folder):
        try:
            return load_checkpoint(checkpoint_path(folder, step)), refusals
        except CheckpointError as error:
            refusals.append(str(error))
    if refusals:
        raise CheckpointError("no checkpoint can be trusted: " + "; ".join(refusals))
    return None, refusals


def prune(folder: Path, *, keep: set[int]) -> None:
    """Remove checkpoints other than those to keep, and what killed processes left behind."""
    sweep_half_written(folder)
    for step in set(checkpoint_steps(folder)) - keep:
        remove_folder(checkpoint_path(folder, step))


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: Path | str) -> None:
    """Put weights into a model, refusing wrong names, wrong shapes and values that are not finite."""
    expected = model.state_dict()
    problems = [f"'{name}' is missing" for name in expected.keys() - weights.keys()]
    problems += [f"'{name}' is not part of the model" for name in weights.keys() - expected.keys()]
    for name in sorted(expected.keys() & weights.keys()):
        if weights[name].shape != expected[name].shape:
            shapes = f"{tuple(weights[name].shape)}, not {tuple(expected[name].shape)}"
            problems.append(f"'{name}' has shape {shapes}")
        elif weights[name].is_floating_point() and not weights[name].isfinite().all():
            problems.append(f"'{name}' holds NaN or infinity")
    if problems:
        raise CheckpointError(f"{source} does not fit the model: {'; '.join(sorted(problems))}")
    model.load_state_dict(dict(weights))


def _serialise(tensors: Mapping[str, Tensor]) -> bytes:
    return safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in tensors.items()})


def _deserialise(path: Path, digest: str) -> dict[str, Tensor]:
    content = _read(path)
    if sha256(content) != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one it was saved with")
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a safetensors file: {error}") from error


def _verified_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(_read(path))
        digest = state.pop("digest")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: it is not the JSON that was saved") from error
    if sha256(canonical_json(state)) != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one it was saved with")
    if state["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has format {state['format']}; this version reads format {FORMAT}. "
            f"Use the version of disentwine that wrote it."
        )
    return dict(state)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error


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
    """The inverse of `optimiser_tensors`; moments take the memory layout of their parameters."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, quantity = name.split(".", 1)
        like = parameters[int(index)]
        if value.shape == like.shape:
            value = torch.empty_like(like, dtype=value.dtype).copy_(value)
        state.setdefault(int(index), {})[quantity] = value
    optimiser.load_state_dict({"state": state, "param_groups": settings})
