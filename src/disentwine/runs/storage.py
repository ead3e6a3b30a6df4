"""Atomic files and folders, and the metric log."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from disentwine.errors import CheckpointError, StorageError

HALF_WRITTEN = ".half-written-"


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing into one line with a remedy."""
    try:
        yield
    except OSError as error:
        remedies = {
            errno.ENOSPC: "the disk is full; free some space",
            errno.EDQUOT: "the disk quota is used up; free some space",
            errno.EROFS: "the disk is read-only; choose another folder",
            errno.EACCES: "no permission to write there; choose another folder",
            errno.EPERM: "no permission to write there; choose another folder",
            errno.ENOTDIR: "a part of the path is a file; choose another folder",
            errno.EEXIST: "there is a file of that name; choose another folder",
        }
        remedy = remedies.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(
            f"cannot write {path}: {remedy}. What was saved before is intact."
        ) from error


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, or keep the existing one."""
    with storage_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file atomically: readers see the old content or the new, never a part."""
    half = path.with_name(f"{HALF_WRITTEN}{uuid4().hex}")
    with storage_errors(path):
        try:
            write_durably(half, content.encode() if isinstance(content, str) else content)
            half.replace(path)
            sync_folder(path.parent)
        finally:
            half.unlink(missing_ok=True)


def write_folder_atomically(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files atomically: it appears complete or not at all."""
    half = path.with_name(f"{HALF_WRITTEN}{uuid4().hex}")
    with storage_errors(path):
        try:
            half.mkdir()
            for name, content in files.items():
                write_durably(half / name, content)
            sync_folder(half)
            if path.exists():
                remove_folder(path)
            half.rename(path)
            sync_folder(path.parent)
        finally:
            shutil.rmtree(half, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder atomically: no half-removed one is ever found under its name."""
    doomed = path.with_name(f"{HALF_WRITTEN}{uuid4().hex}")
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def sweep_half_written(folder: Path) -> None:
    """Remove half-written files of killed processes."""
    for leftover in folder.glob(f"{HALF_WRITTEN}*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


class MetricLog:
    """Append-only records of a run, also written to TensorBoard if it is installed.

    Arguments:
        path: the JSON lines file.
        length: bytes of an earlier session's log to keep; records after its last checkpoint are
            written again.
        tensorboard: folder of the event files.
        step: the step at which this session starts.
    """

    def __init__(self, path: Path, *, length: int, tensorboard: Path, step: int) -> None:
        self.path = path
        with storage_errors(path):
            self.file = path.open("ab")
            size = self.file.tell()
            if size < length:
                self.file.close()
                raise CheckpointError(
                    f"{path} has lost records: {size} bytes, {length} when the checkpoint was "
                    f"saved. Put it back, or choose another folder"
                )
            self.file.truncate(length)
            self.file.seek(length)
        try:
            with storage_errors(tensorboard):
                self.events = _event_writer(tensorboard, step)
        except StorageError:
            self.file.close()
            raise

    def write(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Add one record, such as {"kind": "train", "step": 50, "loss": 81.2, ...}."""
        line = json.dumps({"kind": kind, "step": step, **values}) + "\n"
        with storage_errors(self.path):
            self.file.write(line.encode())
            self.file.flush()
            if self.events is not None:
                for name, value in values.items():
                    self.events.add_scalar(f"{kind}/{name}", value, step)

    def sync(self) -> int:
        """Wait until every record is on the disk; returns the log's length in bytes."""
        with storage_errors(self.path):
            os.fsync(self.file.fileno())
        return self.file.tell()

    def close(self) -> None:
        with storage_errors(self.path):
            try:
                self.file.close()
            finally:
                if self.events is not None:
                    self.events.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log; a half-written last line of a killed process is skipped."""
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise CheckpointError(f"{path}, line {number}: damaged, not a JSON record") from error
    return records


def _event_writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # Records of `step` itself are part of the checkpoint and are not written again.
    return SummaryWriter(str(folder), purge_step=step + 1)
