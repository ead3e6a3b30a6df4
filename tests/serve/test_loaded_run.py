"""A slider that moves faster than the model paints: only its newest position is computed."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from disentwine.serve import explore
from disentwine.serve.app import create_app

WAITING = 4


class Slow:
    """`explore.intervene`, which is held until it is let go and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.go = threading.Event()
        self.intervene = explore.intervene

    def __call__(self, loaded_run: Any, encoded: Any, do: Any) -> Any:
        self.asked.append(do["light_angle"])
        assert self.go.wait(60)
        return self.intervene(loaded_run, encoded, do)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow()
    monkeypatch.setattr(explore, "intervene", slow)
    return slow


@pytest.fixture(scope="module")
def client(runs: Path) -> Iterator[TestClient]:
    app = create_app([runs / "causal"], waiting=WAITING, seconds=60)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="module")
def where(client: TestClient) -> str:
    where = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
    assert client.get(f"{where}/images/t-0").status_code == 200
    return f"{where}/do"


class Hand:
    """Sends requests without waiting for their answers, each surely behind the one before."""

    def __init__(
        self, client: TestClient, where: str, slow: Slow, pool: ThreadPoolExecutor
    ) -> None:
        self.client, self.where, self.slow, self.pool = client, where, slow, pool
        self.worker = client.app.app.state.explorer.models  # type: ignore[attr-defined]

    def move(self, angle: float, **headers: str) -> "Future[Any]":
        body = {"image": "t-0", "do": {"light_angle": angle}}
        before = self._state()
        sent = self.pool.submit(self.client.post, self.where, json=body, headers=headers)
        while self._state() == before and not sent.done():
            time.sleep(0.002)
        return sent

    def _state(self) -> list[int]:
        """Something else once the request waits, or is being answered."""
        return [len(self.slow.asked), *(id(job) for job in list(self.worker._jobs))]


def test_only_the_newest_position_is_painted(client: TestClient, where: str, slow: Slow) -> None:
    with ThreadPoolExecutor(8) as pool:
        hand = Hand(client, where, slow, pool)
        first = hand.move(60, **{"x-client": "a", "x-sequence": "0"})
        while not slow.asked:
            time.sleep(0.002)
        moves = [hand.move(70 + i, **{"x-client": "a", "x-sequence": str(i)}) for i in (1, 2, 3)]
        other = hand.move(99, **{"x-client": "b", "x-sequence": "1"})
        slow.go.set()
        answers = [sent.result(60) for sent in (first, *moves, other)]
    assert [answer.status_code for answer in answers] == [200, 409, 409, 200, 200]
    assert answers[1].json() == {"detail": "superseded"}
    assert slow.asked == [60, 73, 99]
    assert answers[3].json()["after"]["light_angle"] == pytest.approx(73, rel=1e-5)


def test_a_full_queue_is_told_when_to_come_back(client: TestClient, where: str, slow: Slow) -> None:
    with ThreadPoolExecutor(8) as pool:
        hand = Hand(client, where, slow, pool)
        sent = [hand.move(60)]
        while not slow.asked:
            time.sleep(0.002)
        sent += [hand.move(61 + i) for i in range(WAITING)]
        refused = hand.move(90).result(60)
        slow.go.set()
        answers = [each.result(60) for each in sent]
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert "try again" in refused.json()["detail"]
    assert [answer.status_code for answer in answers] == [200] * (1 + WAITING)
