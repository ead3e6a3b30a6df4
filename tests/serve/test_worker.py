"""One thread, a bounded queue, and only the newest of what a client asks for."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from disentwine.serve.worker import BusyError, SupersededError, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test", waiting=3, seconds=5)
    yield worker
    worker.stop()


class Gate:
    """A job that holds the worker until it is let go."""

    def __init__(self) -> None:
        self.began, self.leave = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        assert self.leave.wait(20)
        return "gate"


async def start(worker: Worker, work: Callable[[], Any], **options: Any) -> "asyncio.Task[Any]":
    """Ask, and let the event loop bring the question to the queue."""
    task = asyncio.ensure_future(worker.run(work, **options))
    await asyncio.sleep(0)
    return task


async def hold(worker: Worker) -> tuple[Gate, "asyncio.Task[Any]"]:
    gate = Gate()
    task = await start(worker, gate)
    while not gate.began.is_set():
        await asyncio.sleep(0.001)
    return gate, task


def test_answers_and_errors_come_back(worker: Worker) -> None:
    async def ask() -> None:
        assert await worker.run(lambda: 1 + 1) == 2
        assert await worker.run(lambda: threading.current_thread().name) == "test"
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 / 0)
        assert await worker.run(lambda: "alive") == "alive"

    asyncio.run(ask())


def test_only_the_newest_of_a_client_is_computed(worker: Worker) -> None:
    done: list[int] = []

    async def ask() -> None:
        gate, held = await hold(worker)
        tasks = [
            await start(worker, lambda i=i: done.append(i), key="me", sequence=i) for i in range(5)
        ]
        other = await start(worker, lambda: done.append(99), key="you", sequence=0)
        late = await start(worker, lambda: done.append(-1), key="me", sequence=2)
        gate.leave.set()
        results = await asyncio.gather(held, *tasks, other, late, return_exceptions=True)
        kinds = [type(result) for result in results]
        assert kinds == [str, *[SupersededError] * 4, type(None), type(None), SupersededError]

    asyncio.run(ask())
    assert done == [4, 99]  # the newest took the place of the oldest, so nobody starves


def test_a_full_queue_sends_away_at_once(worker: Worker) -> None:
    async def ask() -> None:
        gate, held = await hold(worker)
        waiting = [await start(worker, lambda i=i: i) for i in range(3)]
        with pytest.raises(BusyError) as refused:
            await worker.run(lambda: 4)
        assert refused.value.retry_after >= 1
        gate.leave.set()
        assert await asyncio.gather(held, *waiting) == ["gate", 0, 1, 2]
        assert await worker.run(lambda: 5) == 5

    asyncio.run(ask())


def test_a_slow_machine_has_a_short_queue() -> None:
    worker = Worker("test", waiting=100, patience=0.5)

    async def ask() -> None:
        await worker.run(lambda: time.sleep(0.01))
        assert worker._pace >= 0.001  # a tenth of what the job took
        gate, held = await hold(worker)
        worker._pace = 0.02  # 20 milliseconds a job: 26 of them are half a second
        admitted = [await start(worker, lambda: None) for _ in range(26)]
        with pytest.raises(BusyError):
            await worker.run(lambda: None)
        worker._pace = 0.01
        admitted.append(await start(worker, lambda: None))
        gate.leave.set()
        await asyncio.gather(held, *admitted)

    asyncio.run(ask())
    worker.stop()


def test_what_takes_too_long_is_given_up_and_never_computed(worker: Worker) -> None:
    done: list[int] = []

    async def ask() -> None:
        gate, held = await hold(worker)
        with pytest.raises(BusyError, match="no answer within"):
            await worker.run(lambda: done.append(1), seconds=0.01)
        with pytest.raises(BusyError):
            await worker.run(gate, seconds=0.01)
        gate.leave.set()
        assert await held == "gate"
        await worker.run(lambda: None)

    asyncio.run(ask())
    assert done == []


def test_a_stopped_worker_takes_nothing_more() -> None:
    worker = Worker("test")

    async def ask() -> None:
        await worker.run(lambda: None)
        worker.stop()
        with pytest.raises(BusyError):
            await worker.run(lambda: None)

    asyncio.run(ask())
