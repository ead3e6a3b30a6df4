"""One thread that computes, and a short queue before it that keeps only what is still wanted."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

Answer = TypeVar("Answer")
PACE_CHANGE = 0.1
"""How much one job counts in the running mean of how long jobs take."""


class BusyError(Exception):
    """Too much is waiting, or the answer took too long: ask again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SupersededError(Exception):
    """A newer request of the same client waits, so this one need not be answered."""


@dataclass(eq=False)
class Job:
    """Arguments:
    work: what to compute.
    answer: where the event loop waits for it.
    key: jobs of the same key replace one another; None for those that do not.
    sequence: the greater is the newer.
    """

    work: Callable[[], Any]
    answer: asyncio.Future[Any]
    key: Hashable
    sequence: int


class Worker:
    """Computes in one thread, in the order of asking, never more than one thing at a time.

    One thread is what a network wants that uses all cores itself, and it makes memory bounded and
    answers reproducible. Jobs are asked for from one event loop.

    Arguments:
        name: of the thread.
        waiting: how many jobs may wait.
        seconds: how long a job may wait and compute until its asker is sent away.
        patience: no job is taken that would have to wait longer than this many seconds, going by how
            long the last ones took; so a slow machine has a short queue.
    """

    def __init__(
        self,
        name: str,
        *,
        waiting: int = 32,
        seconds: float = 10.0,
        patience: float = math.inf,
    ) -> None:
        self.name = name
        self.waiting = waiting
        self.seconds = seconds
        self.patience = patience
        self._pace = 0.0  # seconds a job, a running mean
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    async def run(
        self,
        work: Callable[[], Answer],
        *,
        key: Hashable = None,
        sequence: int = 0,
        seconds: float | None = None,
    ) -> Answer:
        """What `work` answers, computed in the thread.

        Arguments:
            work: a function without arguments.
            key: of a client that only wants its newest answer; a waiting job of the same key and of
                an older sequence is superseded, and its place in the queue taken.
            sequence: counts a client's requests.
            seconds: longer or shorter than usual to wait for this one.
        """
        loop = asyncio.get_running_loop()
        job = Job(work, loop.create_future(), key, sequence)
        self._admit(job)
        limit = self.seconds if seconds is None else seconds
        try:
            answer: Answer = await asyncio.wait_for(job.answer, limit)
        except TimeoutError:
            raise BusyError(
                f"no answer within {limit:g} seconds; ask again", retry_after=2
            ) from None
        finally:
            with self._changed, suppress(ValueError):
                self._jobs.remove(job)
        return answer

    def _admit(self, job: Job) -> None:
        with self._changed:
            if self._stopped:
                raise BusyError("the server is stopping")
            for place, older in enumerate(self._jobs if job.key is not None else ()):
                if older.key != job.key:
                    continue
                if older.sequence > job.sequence:
                    raise SupersededError
                if not older.answer.done():
                    older.answer.set_exception(SupersededError())
                self._jobs[place] = job
                return
            too_long = len(self._jobs) * self._pace > self.patience
            if too_long or len(self._jobs) >= self.waiting:
                raise BusyError("too many requests are waiting; ask again in a second")
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._stopped)
                if self._stopped:
                    return
                job = self._jobs.popleft()
            if job.answer.done():
                continue
            answer, error = None, None
            start = time.monotonic()
            try:
                answer = job.work()
            except BaseException as raised:
                error = raised
            self._pace += PACE_CHANGE * (time.monotonic() - start - self._pace)
            with suppress(RuntimeError):  # the loop may have ended meanwhile
                job.answer.get_loop().call_soon_threadsafe(_settle, job.answer, answer, error)

    def stop(self) -> None:
        """Let the thread end after the job it is at; what waits is not computed."""
        with self._changed:
            self._stopped = True
            self._jobs.clear()
            self._changed.notify_all()


def _settle(answer: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)
