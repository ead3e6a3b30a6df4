"""Processes that train side by side, and end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from disentwine.errors import Interrupted

Result = TypeVar("Result")

stopping: Any = None
"""In a worker: the event that tells all of them to begin nothing more."""


@contextmanager
def workers(jobs: int, *, reused: bool) -> Iterator[ProcessPoolExecutor]:
    """So many processes of one thread each; whatever interrupts them is told to every one.

    Arguments:
        jobs: how many.
        reused: whether a process takes one task after the other; otherwise each has a new one.
    """
    spawn = multiprocessing.get_context("spawn")
    stopped = spawn.Event()
    pool = DeafToCtrlC(
        jobs,
        spawn,
        initializer=_end_with_parent,
        initargs=(stopped,),
        max_tasks_per_child=None if reused else 1,
    )
    others = set(multiprocessing.active_children())
    with _one_thread_each(), _interrupted_by_sigterm(), pool:
        try:
            yield pool
        except BaseException:
            # Not shut down before its processes have ended: it would fail to replace them (Python 3.11).
            stopped.set()
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()  # a training saves its state before it ends
            raise


class DeafToCtrlC(ProcessPoolExecutor):
    """A pool whose processes never hear Ctrl-C, not even while they import: `workers` tells them."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        # Processes, and the thread that starts later ones, inherit what is blocked here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_if_stopped() -> None:
    """End this process if nobody waits any more for what it would make."""
    parent = multiprocessing.parent_process()
    orphaned = parent is not None and not parent.is_alive()
    if orphaned or (stopping is not None and stopping.is_set()):
        os._exit(128 + signal.SIGTERM)


def end_worker() -> None:
    """End this process, if it is a worker, once its training was interrupted and has saved.

    A pool terminates all its workers when one of them died, and waits until they have ended; one that only
    told that its task failed would wait for the next task for ever.
    """
    if stopping is not None:
        os._exit(128 + signal.SIGTERM)


def _end_with_parent(stopped: Any) -> None:
    """In a worker: be terminated when the parent is, however that came about."""
    global stopping  # the only way from an initializer to a task
    stopping = stopped
    end_if_stopped()
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        while True:  # a training saves on the first, a process without task ends by the next
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt as Ctrl-C does, so that results are written of what is complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(
            "the study was stopped; run the same command to go on", signal_number=number
        )

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside compute with one thread: several with more would fight."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
