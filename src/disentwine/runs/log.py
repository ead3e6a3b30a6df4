"""The metric log: JSON lines without times, so that equal runs have equal logs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from disentwine.errors import CheckpointError, StorageError
from disentwine.runs.storage import storage_errors


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
