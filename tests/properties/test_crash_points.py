"""Whatever instant the machine stops at, there is a whole checkpoint, and the next save sweeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from disentwine.runs import storage
from disentwine.runs.checkpoint import (
    checkpoint_path,
    checkpoint_steps,
    load_checkpoint,
    load_newest,
    prune,
    save_checkpoint,
)
from disentwine.runs.run import load_run
from disentwine.runs.storage import write_atomically
from disentwine.training.callbacks import Checkpoint

# A machine that stops closes no files.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Crash(BaseException):
    """The machine stops: from here on nothing reaches the disk."""


class Machine:
    """Counts what a process does to the disk, and stops before the operation number `limit`.

    A file that is being written when the machine stops is left half-written.
    """

    def __init__(self, patch: pytest.MonkeyPatch, limit: int | None) -> None:
        self.count, self.limit = 0, limit
        for name in ("rename", "replace", "fsync", "mkdir", "unlink", "rmdir"):
            patch.setattr(os, name, self.guard(getattr(os, name)))
        write = storage.write_durably

        def write_durably(path: Path, content: bytes) -> None:
            if self.stops():
                if self.count == self.limit:
                    path.write_bytes(content[: len(content) // 2])
                raise Crash
            write(path, content)

        patch.setattr(storage, "write_durably", write_durably)

    def stops(self) -> bool:
        self.count += 1
        return self.limit is not None and self.count >= self.limit

    def guard(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self.stops():
                raise Crash
            return operation(*args, **kwargs)

        return guarded


def operations(work: Callable[[], object]) -> int:
    """How many operations on the disk the work takes."""
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(patch, None)
        work()
        return machine.count


def stop_at(k: int, work: Callable[[], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Machine(patch, k)
        with pytest.raises(Crash):
            work()


def checkpoint(step: int) -> Checkpoint:
    weights = {"w": torch.full((50,), float(step))}
    return Checkpoint(step, weights, {"generator.cpu": torch.zeros(3)}, {"best": None})


def save_and_prune(folder: Path, step: int) -> None:
    save_checkpoint(folder, checkpoint(step))
    prune(folder, keep=set(checkpoint_steps(folder)[:2]))


def test_every_crash_point_of_a_save_leaves_a_whole_checkpoint(
    tmp_path: Path, leftovers: Any
) -> None:
    def prepared(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for step in (1, 2):
            save_and_prune(folder, step)
        return folder

    total = operations(lambda: save_and_prune(prepared("count"), 3))
    swept = 0
    assert total > 15
    for k in range(1, total - operations(lambda: prepared("whole")) + 1):
        folder = prepared(f"crash-{k}")
        stop_at(k, lambda folder=folder: save_and_prune(folder, 3))  # type: ignore[misc]
        newest = load_newest(folder)
        assert newest is not None
        assert newest.step in (2, 3)
        assert newest.weights["w"].eq(newest.step).all()
        for step in checkpoint_steps(folder):
            load_checkpoint(checkpoint_path(folder, step))
        swept += len(leftovers(folder))
        save_and_prune(folder, 4)
        assert leftovers(folder) == []
        assert checkpoint_steps(folder)[0] == 4
        assert len(checkpoint_steps(folder)) == 2
    assert swept > 10


def test_every_crash_point_of_a_replaced_file_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    total = operations(lambda: write_atomically(file, "old"))
    assert total >= 4
    for k in range(1, total + 1):
        write_atomically(file, "old")
        stop_at(k, lambda: write_atomically(file, "new"))
        assert file.read_text() in ("old", "new")


def crash_and_resume(
    points: range, tmp_path: Path, train: Any, fingerprint: Any, leftovers: Any, expected: Any
) -> None:
    for k in points:
        out = tmp_path / f"run-{k}"
        stop_at(k, lambda out=out: train(out))  # type: ignore[misc]
        if not ((out / "recipe.yaml").exists() and load_run(out).finished):
            train(out)
        assert fingerprint(out) == expected, f"after a crash before operation {k}"
        assert leftovers(out) == []


def test_some_crash_points_of_a_run(
    tmp_path: Path, train: Any, fingerprint: Any, leftovers: Any, uninterrupted: Any
) -> None:
    total = operations(lambda: train(tmp_path / "count"))
    points = range(2, total, total // 10)
    crash_and_resume(points, tmp_path, train, fingerprint, leftovers, uninterrupted)


def test_the_crash_points_before_the_first_checkpoint(
    tmp_path: Path, train: Any, fingerprint: Any, leftovers: Any, uninterrupted: Any
) -> None:
    crash_and_resume(range(1, 10), tmp_path, train, fingerprint, leftovers, uninterrupted)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_crash_point_of_a_run(
    tmp_path: Path, train: Any, fingerprint: Any, leftovers: Any, uninterrupted: Any
) -> None:
    total = operations(lambda: train(tmp_path / "count"))
    points = range(1, total + 1)
    crash_and_resume(points, tmp_path, train, fingerprint, leftovers, uninterrupted)
