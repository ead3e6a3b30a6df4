"""Pool of training processes that end with their parent."""

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
"""In a worker: event after which no worker begins a task."""


@contextmanager
def workers(jobs: int, *, reused: bool) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes with one thread each; interruptions are passed on to all of them.

    Arguments:
        jobs: number of processes.
        reused: whether a process runs several tasks; otherwise each task has a new process.
    """
    spawn = multiprocessing.get_context("spawn")
    stopped = spawn.Event()
    pool = PoolWithoutSigint(
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
            # Shut the pool down after its processes: it would fail to replace them (Python 3.11).
            stopped.set()
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()  # a training saves its state before it ends
            raise


class PoolWithoutSigint(ProcessPoolExecutor):
    """A pool whose processes ignore Ctrl-C, also while they import; `workers` stops them."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        # Processes, and the thread that starts later ones, inherit the signals blocked here.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_if_stopped() -> None:
    """End this process if its parent is gone or has stopped."""
    parent = multiprocessing.parent_process()
    orphaned = parent is not None and not parent.is_alive()
    if orphaned or (stopping is not None and stopping.is_set()):
        os._exit(128 + signal.SIGTERM)


def end_worker() -> None:
    """End this process, if it is a worker, after its training was interrupted and saved.

    A pool terminates all its workers when one of them died, and waits until they have ended. A worker that
    only reported a failed task would wait for the next task forever.
    """
    if stopping is not None:
        os._exit(128 + signal.SIGTERM)


def _end_with_parent(stopped: Any) -> None:
    """In a worker: terminate when the parent ends for any reason."""
    global stopping  # the only way from an initializer to a task
    stopping = stopped
    end_if_stopped()
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        while True:  # a training saves on the first signal, a process without task ends on the next
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt like Ctrl-C, so that results of finished trials are written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(
            "the study was stopped; run the same command to resume", signal_number=number
        )

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside have one thread each; more would compete for the cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
