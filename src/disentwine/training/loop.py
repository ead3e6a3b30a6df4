"""The loop of updates, validations and saves; signals; malloc tuning."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from disentwine.core.capabilities import LogsScalars
from disentwine.errors import Interrupted
from disentwine.progress import ProgressBar
from disentwine.training.callbacks import Callback
from disentwine.training.trainer import Trainer


def run_updates(
    trainer: Trainer, recorder: Callback, *, progress: bool | None = None, saved_in: str = ""
) -> None:
    """Update, validate and save up to the last step, or until stopped.

    Arguments:
        trainer: new or restored.
        recorder: keeps the log and the trainer's state; it comes before the trainer's callbacks.
        progress: show the bar, or be silent; by default a bar on a terminal, else a line now and then.
        saved_in: where the recorder saves, for the message of an interruption.
    """
    options, model, callbacks = trainer.options, trainer.model, trainer.callbacks

    def log(kind: str, values: dict[str, float]) -> None:
        recorder.on_log(trainer.step, kind, values)
        _notify(callbacks, "on_log", trainer.step, kind, values)

    def log_scalars() -> None:
        values = dict(model.log_scalars()) if isinstance(model, LogsScalars) else {}
        if values:
            log("watched", values)

    def save() -> None:
        recorder.on_save(model, trainer.step)
        with trainer.kept_weights():
            _notify(callbacks, "on_save", model.eval(), trainer.step)

    def validate_and_save() -> None:
        scores = trainer.validate()
        trainer.note_score(scores["loss"])
        log("validation", scores)
        _notify(callbacks, "on_validate", trainer.step, scores)
        trainer.prepare_save()
        save()

    bar = ProgressBar(type(model).__name__, total=options.steps, done=trainer.step, show=progress)
    with GracefulStop() as stop, bar:
        _notify(callbacks, "on_begin", model, trainer.dataset)
        if trainer.best is None:
            log_scalars()
            validate_and_save()
        while trainer.step < options.steps and not trainer.out_of_patience:
            trainer.update()
            _notify(callbacks, "on_update", trainer.step)
            means = None
            if trainer.step % options.log_every == 0 or trainer.ends_stage:
                means = trainer.take_means()
                log("train", means)
                log_scalars()
            due = trainer.step % options.save_every == 0 or trainer.step == options.steps
            if due:
                validate_and_save()
            bar.advance({"loss": means["loss"]} if means else None)
            if stop.requested is not None:
                if not due:
                    save()
                raise Interrupted(
                    f"stopped at step {trainer.step} of {options.steps}"
                    + (f"; saved in {saved_in}, run the same command to go on" if saved_in else ""),
                    signal_number=stop.requested,
                )
        recorder.on_end(model, trainer.step)
        _notify(callbacks, "on_end", model.eval(), trainer.step)


def _notify(callbacks: Iterable[Callback], event: str, *arguments: Any) -> None:
    """Call the callbacks that override an event; random numbers drawn there have no effect."""
    plain = getattr(Callback, event)
    listening = [each for each in callbacks if getattr(type(each), event) is not plain]
    if listening:
        with torch.random.fork_rng():
            for callback in listening:
                getattr(callback, event)(*arguments)


M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Names and numbers of glibc's `mallopt`."""

MMAP_THRESHOLDS = (1 << 30, 32 << 20)
"""Blocks below this size are reused; older versions of glibc refuse more than 32 MB."""


def keep_freed_memory() -> bool:
    """Reuse large blocks instead of returning them to the system after every step.

    Activations are freed and allocated again at each step; by default glibc maps and unmaps them,
    and the kernel clears every page each time. Returns whether the C library accepted the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 64 << 20}
    accepted = [mallopt(option, value) == 1 for option, value in settings.items()]
    return all(accepted) and any(mallopt(M_MMAP_THRESHOLD, size) == 1 for size in MMAP_THRESHOLDS)


class GracefulStop:
    """While in use, SIGINT and SIGTERM set `requested`; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = number

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
