"""Trains, is killed at random instants and starts again; prints what happened as JSON.

Run as a program of its own: sessions are forked from a process that has imported everything but
has not used torch, so that starting one takes milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import lightning_fabric  # noqa: F401 - imported here so that sessions need not
import numpy as np
import torch
import torch.utils.tensorboard

from disentwine.core.dataset import Dataset, random_split
from disentwine.data import DATASETS
from disentwine.errors import DisentwineError
from disentwine.runs.checkpoint import checkpoint_path, checkpoint_steps, load_newest
from disentwine.runs.fit import train_recipe
from disentwine.runs.recipe import parse_recipe
from disentwine.runs.storage import read_log

SAVE_EVERY = 3


class Noise(Dataset):
    """A few small images of noise."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
        self.factors = np.empty((60, 0))
        self.spec = ()
        self.split = random_split(60, test=10, validation=10, seed=seed)


def session(out: Path, steps: int) -> None:
    """One process that trains; never returns."""
    code = 1
    try:
        torch.set_num_threads(1)
        training = {"steps": steps, "batch_size": 8, "save_every": SAVE_EVERY, "log_every": 1}
        content = {
            "data": "noise",
            "model": {"name": "vae", "latent": 2},
            "training": training | {"threads": 1, "device": "cpu"},
        }
        train_recipe(parse_recipe(content, source="worker"), out, progress=False)
        code = 0
    except DisentwineError as error:
        print(error, file=sys.stderr)
        code = error.exit_code
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def start(out: Path, steps: int) -> int:
    child = os.fork()
    if child == 0:
        session(out, steps)
    return child


def finished(out: Path) -> bool:
    status = out / "status.json"
    return status.exists() and json.loads(status.read_text())["state"] == "finished"


def run_to_end(out: Path, steps: int) -> float:
    """Train without disturbance; returns the seconds it took."""
    began = time.monotonic()
    _, status = os.waitpid(start(out, steps), 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"a session ended with {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began


def progress(out: Path) -> tuple[int, int]:
    """The last step that was logged, and the step that a new session would go on from."""
    folder = out / "checkpoints"
    newest = load_newest(folder) if folder.exists() else None
    logged = [record["step"] for record in read_log(out / "metrics.jsonl")]
    return max(logged, default=0), newest.step if newest is not None else 0


def wait_for_a_save(folder: Path) -> None:
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and not any(folder.glob(".half-written-*")):
        pass


def disturb(
    out: Path, steps: int, *, signals: list[int], longest: float, rng: random.Random
) -> dict[str, Any]:
    """Send each signal to a session of its own at a random instant, then let the last one end.

    Every second signal waits for the next save to begin.
    """
    landed, inside_a_save, most_lost, before_any = 0, 0, 0, 0
    codes: list[int] = []
    slowest = 0.0
    for turn, number in enumerate(signals):
        child = start(out, steps)
        time.sleep(rng.uniform(0, longest if turn else 0.05))
        if turn % 2:
            wait_for_a_save(out / "checkpoints")
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            os.kill(child, number)
            asked = time.monotonic()
            _, status = os.waitpid(child, 0)
            slowest = max(slowest, time.monotonic() - asked)
        code = os.waitstatus_to_exitcode(status)
        codes.append(code)
        landed += code != 0
        inside_a_save += any(out.rglob(".half-written-*"))
        logged, kept = progress(out)
        before_any += kept == 0
        if number == signal.SIGKILL:
            most_lost = max(most_lost, logged - kept)
        if finished(out):
            break
    if not finished(out):
        run_to_end(out, steps)
    return {
        "landed": landed,
        "inside_a_save": inside_a_save,
        "before_any_update_was_saved": before_any,
        "most_steps_lost": most_lost,
        "slowest_answer": slowest,
        "codes": codes,
        "leftovers": len(list(out.rglob(".half-written-*"))),
    }


def fingerprint(out: Path) -> dict[str, str]:
    newest = checkpoint_path(out / "checkpoints", checkpoint_steps(out / "checkpoints")[0])
    files = [*newest.iterdir(), out / "metrics.jsonl"]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main(folder: Path, kind: str, times: int, steps: int, seed: int) -> None:
    DATASETS["noise"] = Noise
    seconds = run_to_end(folder / "straight", steps)
    signals = {"kill": [signal.SIGKILL], "stop": [signal.SIGTERM, signal.SIGINT]}[kind]
    sent = [signals[i % len(signals)] for i in range(times)]
    # All sessions together come half the way at most, so that every signal lands.
    longest = run_to_end(folder / "short", 1) + seconds / (2 * times)
    outcome = disturb(
        folder / "broken", steps, signals=sent, longest=longest, rng=random.Random(seed)
    )
    outcome |= {"seconds": seconds, "longest": longest, "steps": steps, "save_every": SAVE_EVERY}
    outcome["equal"] = fingerprint(folder / "straight") == fingerprint(folder / "broken")
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]))
