"""Workers end with the process that started them, and save before."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("holding_workers.py")
PATIENCE = 120.0


def wait_for(condition) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.05)


def runs(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children(number: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


in_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks at processes in /proc"
)


@in_proc
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_save_and_end_when_their_parent_does(tmp_path, how) -> None:
    parent = subprocess.Popen(
        [sys.executable, SCRIPT, tmp_path, "reused"], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(list(tmp_path.glob("*.started"))) == 2)
    workers = [int(path.stem) for path in tmp_path.glob("*.started")]
    os.kill(parent.pid, how)
    said = parent.communicate(timeout=PATIENCE)[1]
    if how == signal.SIGTERM:
        assert "run the same command to resume" in said
    wait_for(lambda: not any(runs(worker) for worker in workers))
    assert {int(path.stem) for path in tmp_path.glob("*.saved")} == set(workers)
    assert len(list(tmp_path.glob("*.started"))) == 2, "nothing new was begun"


@in_proc
@pytest.mark.parametrize("kept", ["reused", "new for each task"])
def test_workers_hear_of_ctrl_c_from_their_parent_alone(tmp_path, kept) -> None:
    parent = subprocess.Popen(
        [sys.executable, SCRIPT, tmp_path, kept],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: len(children(parent.pid)) == 3)  # two workers, and what counts semaphores
    for child in children(parent.pid):
        os.kill(child, signal.SIGINT)  # while it imports
    wait_for(lambda: len(list(tmp_path.glob("*.started"))) == 2)
    begun = {int(path.stem) for path in tmp_path.glob("*.started")}
    os.killpg(parent.pid, signal.SIGINT)
    assert parent.communicate(timeout=PATIENCE)[1] == ""
    assert {int(path.stem) for path in tmp_path.glob("*.saved")} == begun
