"""One compute thread with a short queue that drops superseded requests."""

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
"""Weight of one job in the running mean of job durations."""


class BusyError(Exception):
    """The queue is full or the answer took too long; repeat after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SupersededError(Exception):
    """A newer request of the same client is waiting; this one is not answered."""


@dataclass(eq=False)
class Job:
    """A job of the queue.

    Arguments:
        work: function to compute.
        answer: future that the event loop waits for.
        key: jobs of the same key replace one another; None for jobs that are not replaced.
        sequence: order of the jobs of a key; larger is newer.
    """

    work: Callable[[], Any]
    answer: asyncio.Future[Any]
    key: Hashable
    sequence: int


class Worker:
    """Computes jobs in one thread, one at a time, in their order.

    A network uses all cores itself; one thread bounds memory and makes answers reproducible. Jobs
    come from one event loop.

    Arguments:
        name: of the thread.
        waiting: maximum number of waiting jobs.
        seconds: maximum duration of a job, with its waiting time.
        patience: a job is refused if its expected waiting time, by the mean duration of the last jobs,
            is longer than this many seconds; a slow machine then has a short queue.
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
        self._pace = 0.0  # seconds per job, a running mean
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
        """The result of `work`, computed in the thread.

        Arguments:
            work: a function without arguments.
            key: of a client that needs only its newest answer; the job replaces a waiting job of the
                same key with an older sequence.
            sequence: number of the client's request.
            seconds: maximum duration of this job; by default that of the worker.
        """
        loop = asyncio.get_running_loop()
        job = Job(work, loop.create_future(), key, sequence)
        self._admit(job)
        limit = self.seconds if seconds is None else seconds
        try:
            answer: Answer = await asyncio.wait_for(job.answer, limit)
        except TimeoutError:
            raise BusyError(
                f"no answer within {limit:g} seconds; try again", retry_after=2
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
                raise BusyError("too many requests are waiting; try again in a second")
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
            with suppress(RuntimeError):  # the loop may have ended
                job.answer.get_loop().call_soon_threadsafe(_settle, job.answer, answer, error)

    def stop(self) -> None:
        """Stop the thread after its current job; waiting jobs are dropped."""
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
