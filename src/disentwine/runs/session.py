"""Opening a run folder for training: one process at a time, one recipe, never overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from disentwine.errors import UsageError
from disentwine.runs.checkpoint import checkpoint_steps
from disentwine.runs.recipe import Recipe
from disentwine.runs.run import LOCK, RECIPE, Run
from disentwine.runs.storage import HALF_WRITTEN, make_folder, storage_errors, write_atomically

A_LOOK = 0.5
"""Seconds that are enough for whoever only looks whether a folder is held (`Run.running`)."""


@contextmanager
def lock_run(path: Path, recipe: Recipe) -> Iterator[Run]:
    """A run folder of this recipe, new or to be gone on with, for this process alone."""
    check_run(path, recipe)
    with _held(make_folder(path)):
        # Again, since another process may have begun in between, and ended.
        if not check_run(path, recipe):
            write_atomically(path / RECIPE, recipe.to_yaml())
        make_folder(path / "checkpoints")
        yield Run(path)


def check_run(path: Path, recipe: Recipe) -> bool:
    """Whether there is a run to go on with; refuses what is not to be touched. Only reads."""
    with storage_errors(path):
        names = {item.name for item in path.iterdir()} if path.is_dir() else set()
    if RECIPE not in names:
        if not all(name == LOCK or name.startswith(HALF_WRITTEN) for name in names):
            raise UsageError(
                f"{path} is not empty and not a run folder; choose another folder for out"
            )
        return False
    run = Run(path)
    if not run.finished and not checkpoint_steps(run.checkpoints):
        return False
    changes = differences(asdict(run.recipe), asdict(recipe))
    if changes:
        raise UsageError(
            f"{path} holds a run of another recipe ({'; '.join(changes)}); "
            f"choose another folder for out"
        )
    if run.finished:
        raise UsageError(
            f"{path} holds a finished run, which is never overwritten; choose another folder for "
            f"out, or look at it with 'disentwine evaluate' and 'disentwine report'"
        )
    return True


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What was otherwise, a line for each key."""
    lines: list[str] = []
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += differences(before, after, f"{prefix}{key}.")
        elif before != after or isinstance(before, bool) != isinstance(after, bool):  # True == 1
            lines.append(f"{prefix}{key} was {before!r}, is {after!r}")
    return lines


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a folder for this process alone."""
    lock = FileLock(path / LOCK)
    with storage_errors(path):
        try:
            lock.acquire(timeout=A_LOOK)
        except Timeout as error:
            raise UsageError(f"{path} is being trained by another process") from error
    try:
        yield
    finally:
        lock.release()
