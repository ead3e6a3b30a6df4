"""Where a training keeps its records and its best weights: in memory, or in a run folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from disentwine.runs.checkpoint import (
    checkpoint_path,
    load_best,
    load_newest,
    prune,
    save_checkpoint,
)
from disentwine.runs.log import MetricLog
from disentwine.runs.run import METRICS, Run
from disentwine.runs.storage import storage_errors, sweep_half_written
from disentwine.training.state import WEIGHTS, load_weights
from disentwine.training.trainer import Trainer


class Recorder(Protocol):
    """What the loop tells of its progress."""

    def record(self, kind: str, values: Mapping[str, float]) -> None:
        """Keep one record of losses."""

    def save(self) -> None:
        """Keep the trainer's state as it is now."""

    def finish(self) -> None:
        """Give the model its best weights."""

    def close(self) -> None:
        """Let go of files."""


class MemoryRecorder:
    """Keeps the best weights only."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.best: dict[str, Tensor] = {}

    def record(self, kind: str, values: Mapping[str, float]) -> None:
        pass

    def save(self) -> None:
        if self.trainer.best is not None and self.trainer.best["step"] == self.trainer.step:
            weights = self.trainer.weights
            self.best = {name: value.detach().clone() for name, value in weights.items()}

    def finish(self) -> None:
        self.trainer.model.load_state_dict(self.best)

    def close(self) -> None:
        pass


class RunRecorder:
    """Keeps the metric log, the last two checkpoints and the best of each, and resumes from them.

    Arguments:
        run: the folder, held by this process.
        trainer: restored from the newest intact checkpoint, where there is one.
    """

    def __init__(self, run: Run, trainer: Trainer) -> None:
        self.run, self.trainer = run, trainer
        with storage_errors(run.path):
            for folder in (run.path, run.checkpoints):
                sweep_half_written(folder)
        checkpoint = load_newest(run.checkpoints, use=trainer.restore)
        resumed = checkpoint is not None
        self.saved_step = trainer.step if resumed else -1
        self.kept = [self._needed()] if resumed else []
        self.seconds = run.status.get("seconds", 0.0)
        self.started = time.monotonic()
        self.log = MetricLog(
            run.path / METRICS,
            length=checkpoint.state["log_bytes"] if checkpoint is not None else 0,
            tensorboard=run.path / "tensorboard",
            step=trainer.step,
        )

    def record(self, kind: str, values: Mapping[str, float]) -> None:
        self.log.write(kind, self.trainer.step, values)

    def save(self) -> None:
        if self.saved_step == self.trainer.step:
            return
        save_checkpoint(self.run.checkpoints, self.trainer.checkpoint(log_bytes=self.log.sync()))
        self.saved_step = self.trainer.step
        self.kept = [self._needed(), *self.kept][:2]
        with storage_errors(self.run.checkpoints):
            prune(self.run.checkpoints, keep=set().union(*self.kept))
        self._write_status("unfinished")

    def finish(self) -> None:
        best = load_best(self.run.checkpoints)
        if best is not None:
            path = checkpoint_path(self.run.checkpoints, best.step)
            load_weights(self.trainer.model, best.weights, source=path / WEIGHTS)
        self._write_status("finished")

    def close(self) -> None:
        self.log.close()

    def _needed(self) -> set[int]:
        """The checkpoints to go on from here: this one, and the best when it was made."""
        best = self.trainer.best
        return {self.trainer.step} | ({int(best["step"])} if best is not None else set())

    def _write_status(self, state: str) -> None:
        self.run.write_status(
            state=state,
            step=self.trainer.step,
            best=self.trainer.best,
            seconds=self.seconds + time.monotonic() - self.started,
        )
