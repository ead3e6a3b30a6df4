"""Verified checkpoint folders, and what they were made with: data, versions, commit."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from disentwine.core.dataset import Dataset
from disentwine.errors import CheckpointError, warn
from disentwine.runs.storage import (
    remove_folder,
    sweep_half_written,
    write_folder_atomically,
)
from disentwine.runs.upgrade import (
    FORMAT,
    TENSORS,
    rename_all,
    upgrade_state,
    upgrade_training_tensors,
)
from disentwine.training.callbacks import Checkpoint

WEIGHTS, TRAINING, STATE = "weights.safetensors", "training.safetensors", "state.json"


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def checkpoint_steps(folder: Path) -> list[int]:
    """Steps of the checkpoints in a folder, newest first."""
    names = folder.glob(f"step-{'[0-9]' * 8}")
    return sorted((int(path.name[5:]) for path in names), reverse=True)


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
    """Read a checkpoint; refuses one that differs in any bit from what was saved."""
    state = _verified_state(path / STATE)
    try:
        digests = [state["files"][name]["sha256"] for name in (WEIGHTS, TRAINING)]
        step = int(state["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path / STATE} lacks what a checkpoint needs: {error}") from error
    if path.name != checkpoint_path(path.parent, step).name:
        raise CheckpointError(f"{path / STATE} is of step {step}: the folder was renamed")
    weights, training = map(_deserialise, (path / WEIGHTS, path / TRAINING), digests)
    if state["format"] < FORMAT:
        weights, training = rename_all(weights, TENSORS), upgrade_training_tensors(training)
        state = upgrade_state(state)
    return Checkpoint(step, weights, training, state)


Use = Callable[[Checkpoint, Path], None]


def load_newest(folder: Path, *, use: Use = lambda checkpoint, path: None) -> Checkpoint | None:
    """The newest checkpoint that is intact and that `use` accepts; warns of refused ones.

    Arguments:
        folder: where the checkpoints are.
        use: called with each candidate; raises `CheckpointError` where one does not fit.
    """
    refusals: list[str] = []
    for step in checkpoint_steps(folder):
        path = checkpoint_path(folder, step)
        try:
            checkpoint = load_checkpoint(path)
            use(checkpoint, path)
        except CheckpointError as error:
            refusals.append(str(error))
            continue
        for refusal in refusals:
            warn_of_refusal(refusal, instead=path)
        return checkpoint
    if refusals:
        raise CheckpointError(
            f"no checkpoint can be used: {'; '.join(refusals)}. Bring {folder} back from a copy, "
            f"or remove the run and train it again"
        )
    return None


def load_best(folder: Path) -> Checkpoint | None:
    """The checkpoint of the best validation score; the newest where that one is refused."""
    newest = load_newest(folder)
    if newest is None:
        return None
    best = newest.state.get("best") or {}
    if best.get("step", newest.step) == newest.step:
        return newest
    try:
        return load_checkpoint(checkpoint_path(folder, best["step"]))
    except CheckpointError as error:
        warn_of_refusal(error, instead=checkpoint_path(folder, newest.step))
        return newest


def warn_of_refusal(reason: str | Exception, *, instead: Path) -> None:
    """Warn that an older checkpoint is used instead of a refused one."""
    warn(f"{reason}. {instead.name} is used instead.")


def prune(folder: Path, *, keep: set[int]) -> None:
    """Remove checkpoints other than those to keep, and what killed processes left behind."""
    sweep_half_written(folder)
    for step in set(checkpoint_steps(folder)) - keep:
        remove_folder(checkpoint_path(folder, step))


def _serialise(tensors: Mapping[str, Tensor]) -> bytes:
    # Copies, because safetensors takes no tensors that share memory, as tied weights do.
    layout = torch.contiguous_format
    return save_tensors(
        {k: v.detach().cpu().clone(memory_format=layout) for k, v in tensors.items()}
    )


def _deserialise(path: Path, digest: str) -> dict[str, Tensor]:
    content = _read(path)
    if sha256(content) != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one it was saved with")
    try:
        return load_tensors(content)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a safetensors file: {error}") from error


def _verified_state(path: Path) -> dict[str, Any]:
    content = _read(path)
    try:
        state = json.loads(content)
        as_saved = canonical_json(state)
        digest = state.pop("digest")
        sound = as_saved == content and sha256(canonical_json(state)) == digest
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: it is not the JSON that was saved") from error
    if not sound:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not the one it was saved with")
    if state.get("format") not in range(1, FORMAT + 1):
        raise CheckpointError(
            f"{path} has format {state.get('format')}; this version reads formats 1 to {FORMAT}: "
            f"use the version of disentwine that wrote it"
        )
    return dict(state)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error


ROWS = 4096
"""Images read at once."""


def fingerprint(dataset: Dataset) -> str:
    """A digest of the images, the factors and the split of a data set that users may edit.

    With another row, or rows in another order, the same seed splits the images differently.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> pendulum.editable, len(fingerprint(pendulum))
    (False, 64)
    """
    digest = hashlib.sha256(repr((dataset.image_shape, dataset.names)).encode())
    for part in sorted(dataset.split):
        digest.update(part.encode())
        digest.update(np.ascontiguousarray(dataset.split[part]).data)
    digest.update(np.ascontiguousarray(dataset.factors).data)
    for start in range(0, len(dataset), ROWS):
        digest.update(np.ascontiguousarray(dataset.images[start : start + ROWS]).data)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of disentwine, Python and the libraries that results depend on."""
    packages = ("disentwine", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def version_changes(before: Mapping[str, Any], *, threads: int) -> list[str]:
    """Versions and threads that differ from those of a checkpoint, and may change the last digits.

    Arguments:
        before: the state of a checkpoint.
        threads: of torch now.

    >>> version_changes({"threads": 4, "versions": versions() | {"torch": "1.0"}}, threads=4)[0][:10]
    'torch 1.0,'
    """
    old = {"threads": before.get("threads"), **before.get("versions", {})}
    now = {"threads": threads, **versions()}
    return [
        f"{name} {old[name]}, now {value}"
        for name, value in now.items()
        if old.get(name) not in (None, value)
    ]


@cache
def commit() -> str | None:
    """The commit of the code's repository, with "+" if its files differ; None outside of one."""
    here = Path(__file__).parents[1]
    try:
        answers = [
            subprocess.run(
                ["git", *words], cwd=here, capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (
                ("ls-files", "--error-unmatch", "__init__.py"),
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "."),
            )
        ]
    except (OSError, subprocess.SubprocessError):
        return None
    return answers[1] + ("+" if answers[2] else "")


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


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def canonical_json(value: Any) -> bytes:
    """The same bytes for the same value, on every machine."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False).encode()
