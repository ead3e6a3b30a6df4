"""The loop of updates, validations and saves; signals; malloc tuning."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Names and numbers of glibc's `mallopt`."""

MMAP_THRESHOLDS = (1 << 30, 32 << 20)
"""Blocks below this are reused; older versions of glibc refuse more than 32 MB."""


def keep_freed_memory() -> bool:
    """Reuse large blocks instead of returning them to the system after every step.

    Activations are freed and asked for again at each step; by default glibc maps and unmaps them,
    and the kernel clears every page anew. Returns whether the C library took the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 64 << 20}
    taken = [mallopt(option, value) == 1 for option, value in settings.items()]
    return all(taken) and any(mallopt(M_MMAP_THRESHOLD, size) == 1 for size in MMAP_THRESHOLDS)


class PoliteStop:
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
