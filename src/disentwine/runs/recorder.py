"""Recorders: callbacks that keep the log, the checkpoints and the best weights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from disentwine.core.model import Model
from disentwine.errors import DataError, warn
from disentwine.runs.checkpoint import (
    WEIGHTS,
    checkpoint_path,
    load_best,
    load_newest,
    load_weights,
    prune,
    save_checkpoint,
    version_changes,
    versions,
)
from disentwine.runs.run import METRICS, Run
from disentwine.runs.storage import MetricLog, storage_errors, sweep_half_written
from disentwine.training.callbacks import Callback, Checkpoint
from disentwine.training.trainer import Trainer


class MemoryRecorder(Callback):
    """Keeps the best weights in memory.

    Arguments:
        trainer: whose weights are kept.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.best: dict[str, Tensor] = {}

    def on_save(self, model: Model, step: int) -> None:
        if self.trainer.best is not None and self.trainer.best["step"] == step:
            weights = self.trainer.weights
            self.best = {name: value.detach().clone() for name, value in weights.items()}

    def on_end(self, model: Model, step: int) -> None:
        model.load_state_dict(self.best)

    def close(self) -> None:
        """There are no files to close."""


class RunRecorder(Callback):
    """Keeps the metric log, the last two checkpoints and their best ones; resumes from them.

    Arguments:
        run: the folder, locked by this process.
        trainer: restored from the newest intact checkpoint, where there is one.
        data: the fingerprint of the data set, if users may edit it.
    """

    def __init__(self, run: Run, trainer: Trainer, *, data: str | None = None) -> None:
        self.run, self.trainer, self.data = run, trainer, data
        with storage_errors(run.path):
            for folder in (run.path, run.checkpoints):
                sweep_half_written(folder)
        checkpoint = load_newest(run.checkpoints, use=self._restore)
        self.kept = [] if checkpoint is None else [self._needed()]
        self.seconds = run.status.get("seconds", 0.0)
        self.started = time.monotonic()
        self.log = MetricLog(
            run.path / METRICS,
            length=checkpoint.state["log_bytes"] if checkpoint is not None else 0,
            tensorboard=run.path / "tensorboard",
            step=trainer.step,
        )

    def on_log(self, step: int, kind: str, values: Mapping[str, float]) -> None:
        self.log.write(kind, step, values)

    def on_save(self, model: Model, step: int) -> None:
        checkpoint = self.trainer.checkpoint()
        checkpoint.state |= {
            "log_bytes": self.log.sync(),
            "threads": torch.get_num_threads(),
            "versions": versions(),
        } | ({} if self.data is None else {"data": self.data})
        save_checkpoint(self.run.checkpoints, checkpoint)
        self.kept = [self._needed(), *self.kept][:2]
        with storage_errors(self.run.checkpoints):
            prune(self.run.checkpoints, keep=set().union(*self.kept))
        self._write_status("unfinished")

    def on_end(self, model: Model, step: int) -> None:
        best = load_best(self.run.checkpoints)
        if best is not None:
            path = checkpoint_path(self.run.checkpoints, best.step)
            load_weights(model, best.weights, source=path / WEIGHTS)
        self._write_status("finished")

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    def _restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """Restore the trainer; refuses other data, and warns of other versions."""
        if self.data is not None and checkpoint.state.get("data", self.data) != self.data:
            raise DataError(
                f"the images, concepts or split of the data are not those that {path} was trained on; "
                f"restore them as they were, or choose another folder for out"
            )
        load_weights(self.trainer.model, checkpoint.weights, source=path / WEIGHTS)
        self.trainer.restore(checkpoint, path)
        if changed := version_changes(checkpoint.state, threads=torch.get_num_threads()):
            warn(
                f"{path.name} was saved with {'; '.join(changed)}: resuming is not exact to the bit"
            )

    def _needed(self) -> set[int]:
        """The checkpoints to resume from here: this one, and the best one so far."""
        best = self.trainer.best
        return {self.trainer.step} | ({int(best["step"])} if best is not None else set())

    def _write_status(self, state: str) -> None:
        self.run.write_status(
            state=state,
            step=self.trainer.step,
            best=self.trainer.best,
            seconds=self.seconds + time.monotonic() - self.started,
        )
