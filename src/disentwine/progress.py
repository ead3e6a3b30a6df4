"""Progress bar or periodic lines: rate, remaining time, latest values."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

BETWEEN_LINES = 30.0
"""Seconds between lines when the output is not a terminal."""


class RateColumn(ProgressColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.1f}/s", style="progress.data.speed")


class ProgressBar:
    """A progress bar on a terminal; elsewhere a line every 30 seconds.

    Arguments:
        label: name of the task.
        total: number of steps.
        done: number of steps completed by earlier sessions.
        show: True always shows the bar, False shows nothing; by default a terminal gets the bar.
    """

    def __init__(self, label: str, *, total: int, done: int = 0, show: bool | None = None) -> None:
        visible = sys.stderr.isatty() if show is None else show
        self._writes_lines = show is None and not visible
        self._line = _Line(label, total=total, done=done)
        self._values = ""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            RateColumn(),
            TimeRemainingColumn(),
            TextColumn("left  {task.fields[values]}"),
            console=Console(stderr=True),
            disable=not visible,
        )
        self._task = self._progress.add_task(label, total=total, completed=done, values="")

    def advance(self, values: Mapping[str, float] | None = None) -> None:
        """Count one step, and show new values if given."""
        self._progress.advance(self._task)
        if values is not None:
            self._values = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
            self._progress.update(self._task, values=self._values)
        if self._writes_lines:
            self._line.advance(self._values)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


class _Line:
    """Step counter that prints a progress line every 30 seconds."""

    def __init__(self, label: str, *, total: int, done: int) -> None:
        self.label, self.total, self.done = label, total, done
        self.reported_done, self.reported_at = done, time.monotonic()

    def advance(self, values: str) -> None:
        self.done += 1
        elapsed = time.monotonic() - self.reported_at
        if elapsed < BETWEEN_LINES:
            return
        rate = (self.done - self.reported_done) / elapsed
        left = timedelta(seconds=round((self.total - self.done) / rate))
        line = f"{self.label}: {self.done:,} of {self.total:,}, {rate:.3g}/s, {left} left"
        print(f"{line}  {values}".rstrip(), file=sys.stderr, flush=True)
        self.reported_done, self.reported_at = self.done, time.monotonic()
