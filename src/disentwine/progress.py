"""The progress bar of long work: rate, time left and the newest values."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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


class RateColumn(ProgressColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.1f}/s", style="progress.data.speed")


class ProgressBar:
    """A bar on a terminal, silence elsewhere.

    Arguments:
        label: what is going on.
        total: how many steps make the whole.
        done: how many were made by an earlier session.
        show: force the bar on or off; by default it shows on a terminal.
    """

    def __init__(self, label: str, *, total: int, done: int = 0, show: bool | None = None) -> None:
        visible = sys.stderr.isatty() if show is None else show
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
        """Count one step, and show values when there are new ones."""
        self._progress.advance(self._task)
        if values is not None:
            shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
            self._progress.update(self._task, values=shown)

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
