"""Killed at random instants, many of them inside a save, a training ends as though nothing was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("survival_worker.py")


def survive(folder: Path, kind: str, *, times: int, steps: int, seed: int) -> dict[str, Any]:
    """What became of a training that was disturbed `times` times."""
    words = [str(folder), kind, *map(str, (times, steps, seed))]
    process = subprocess.run(
        [sys.executable, str(WORKER), *words], stdout=subprocess.PIPE, text=True, timeout=1200
    )
    assert process.returncode == 0
    outcome: dict[str, Any] = json.loads(process.stdout)
    print(f"\n{kind}, seed {seed}: {outcome}")
    return outcome


def check_kills(outcome: dict[str, Any], *, times: int) -> None:
    assert outcome["landed"] == times
    assert set(outcome["codes"]) == {-signal.SIGKILL}
    assert outcome["most_steps_lost"] <= outcome["save_every"]
    assert outcome["equal"]
    assert outcome["leftovers"] == 0


def test_three_kills(tmp_path: Path) -> None:
    check_kills(survive(tmp_path, "kill", times=3, steps=120, seed=0), times=3)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(3))
def test_twenty_kills(seed: int, tmp_path: Path) -> None:
    outcome = survive(tmp_path, "kill", times=20, steps=900, seed=seed)
    check_kills(outcome, times=20)
    assert outcome["inside_a_save"] >= 5


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_polite_stops(tmp_path: Path) -> None:
    outcome = survive(tmp_path, "stop", times=20, steps=900, seed=0)
    # Before its handlers are set a session dies of the signal itself, which a shell shows as 143;
    # Python turns an early SIGINT into an exception, for which this program's code is 1.
    assert set(outcome["codes"]) <= {128 + 15, 128 + 2, -signal.SIGTERM, 1}
    assert {128 + 15, 128 + 2} <= set(outcome["codes"])
    assert outcome["landed"] == 20
    assert outcome["slowest_answer"] < 10
    assert outcome["equal"]
