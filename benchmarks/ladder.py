"""Steps per second of hierarchical VAEs in our loop, a common one and pythae's, interleaved.

    python benchmarks/ladder.py [--rounds 6] [--seconds 5] [--batch 64 256]
    python benchmarks/ladder.py --pythae PYTHON --out results/ladder-throughput.json

The first row is the default MLP of pythae's VAE (784-512-64 and back) as a ladder VAE of one layer; the
second is the five-layer ladder VAE of the paper. The common loop is that of `benchmarks/training.py`:
float images, a shuffling DataLoader, default Adam. Batches of 64 are the default of both libraries, 256
is used in the ladder study. PYTHON is an interpreter that can import pythae, such as that of a virtual
environment with `pip install pythae`, which runs pythae's trainer on its VAE; without PYTHON pythae is
left out. All train on MNIST (in DISENTWINE_DATA), each in its own process. The processes take turns,
so that other load slows all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from _timing import count_steps, usual_update

LATENT = 64
MODELS: dict[str, dict[str, Any]] = {
    "one layer": {"layers": (LATENT,), "hidden": (512,), "depth": 1, "batch_norm": False},
    "five layers": {},
}
Run = Callable[[float], int]
"""Train for some seconds; returns the number of updates."""


def repeating(update: Callable[[], None]) -> Run:
    return lambda seconds: count_steps(update, seconds)[0]


def ours(folder: Path, model: str, batch: int) -> Run:
    """Updates of the loop of `fit`."""
    from disentwine import data
    from disentwine.models import LadderVAE
    from disentwine.training.loop import keep_freed_memory
    from disentwine.training.options import TrainingOptions
    from disentwine.training.trainer import Trainer

    keep_freed_memory()
    digits = data.MNIST()
    trainer = Trainer(
        LadderVAE.for_data(digits, **MODELS[model]),
        digits,
        TrainingOptions(steps=10**6, batch_size=batch, learning_rate=1e-4, device="cpu"),
        seed=0,
    )
    return repeating(trainer.update)


def usual(folder: Path, model: str, batch: int) -> Run:
    """Updates of a common training loop."""
    images = read(folder)  # imports torch before disentwine: its threads wait as they do by default
    from disentwine.models import LadderVAE

    network = LadderVAE(image_shape=(28, 28, 1), **MODELS[model])
    return repeating(usual_update(network, images, batch=batch, learning_rate=1e-4, drop_last=True))


def pythae(folder: Path, model: str, batch: int) -> Run:
    """Updates of pythae's trainer, with its default networks and settings."""
    import torch
    from pythae.data.datasets import BaseDataset
    from pythae.models import VAE, VAEConfig
    from pythae.trainers import BaseTrainer, BaseTrainerConfig

    images = read(folder)
    settings = VAEConfig(input_dim=(1, 28, 28), latent_dim=LATENT, reconstruction_loss="bce")
    trainer = BaseTrainer(
        VAE(settings),
        train_dataset=BaseDataset(images, torch.zeros(len(images))),
        training_config=BaseTrainerConfig(
            output_dir=str(folder / "pythae"),
            per_device_train_batch_size=batch,
            num_epochs=1,
            no_cuda=True,
        ),
    )
    trainer.prepare_training()
    loader = trainer.train_loader

    class Timed:
        """Its loader for a limited time."""

        dataset = loader.dataset
        seconds, steps = 0.0, 0

        def __len__(self) -> int:
            return len(loader)

        def __iter__(self) -> Iterator[Any]:
            start, self.steps = time.perf_counter(), 0
            while True:
                for inputs in loader:
                    if time.perf_counter() - start >= self.seconds:
                        return
                    yield inputs
                    self.steps += 1

    timed = trainer.train_loader = Timed()

    def run(seconds: float) -> int:
        timed.seconds = seconds
        trainer.train_step(epoch=1)
        return timed.steps

    return run


def read(folder: Path) -> Any:
    """(n, 1, 28, 28) floats."""
    import numpy as np
    import torch

    images = torch.from_numpy(np.load(folder / "images.npy"))
    return images.permute(0, 3, 1, 2).float().div(255).contiguous()


LOOPS: dict[str, Callable[[Path, str, int], Run]] = {"ours": ours, "usual": usual, "pythae": pythae}


def work(loop: str, folder: Path, model: str, batch: int) -> None:
    """Build a loop, then run it for as many seconds as each line asks, answering with its rate."""
    answers, sys.stdout = sys.stdout, sys.stderr
    run = LOOPS[loop](folder, model, batch)
    run(1.0)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        steps = run(float(line))
        print(steps / (time.perf_counter() - start), file=answers, flush=True)


def compare(
    pythons: dict[str, str], folder: Path, model: str, *, rounds: int, seconds: float, batch: int
) -> dict[str, list[float]]:
    """Steps per second of every loop in each round."""
    workers = {}
    for loop, python in pythons.items():
        workers[loop] = subprocess.Popen(
            [python, __file__, "--worker", loop, str(folder), model, "--batch", str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / f"{loop}.log").open("w"),
            text=True,
        )
    try:
        rates: dict[str, list[float]] = {loop: [] for loop in workers}
        for loop, worker in workers.items():
            _ask(worker, folder / f"{loop}.log")
        for _ in range(rounds):
            for loop, worker in workers.items():
                rates[loop].append(float(_ask(worker, folder / f"{loop}.log", seconds)))
        return rates
    finally:
        for worker in workers.values():
            worker.stdin.close()  # type: ignore[union-attr]
            worker.wait()


def _ask(worker: Any, log: Path, seconds: float | None = None) -> str:
    if seconds is not None:
        print(seconds, file=worker.stdin, flush=True)
    answer: str = worker.stdout.readline()
    if not answer:
        raise SystemExit(log.read_text())
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pythae", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        loop, folder, model = options.worker
        work(loop, Path(folder), model, options.batch[0])
        return
    import numpy as np

    from disentwine import data

    digits = data.MNIST()
    rows: list[dict[str, Any]] = []
    print(f"{'model':<14}{'batch':>6}  {'loop':<10}{'steps/s':>9}{'ours is':>10}")
    with tempfile.TemporaryDirectory() as name:
        np.save(Path(name) / "images.npy", digits.images[digits.split["train"]])
        for model, batch in product(options.models, options.batch):
            pythons = {"ours": sys.executable, "usual": sys.executable}
            if options.pythae and model == "one layer":
                pythons["pythae"] = options.pythae
            rates = compare(
                pythons,
                Path(name),
                model,
                rounds=options.rounds,
                seconds=options.seconds,
                batch=batch,
            )
            for loop, found in rates.items():
                ratio = statistics.median(a / b for a, b in zip(rates["ours"], found, strict=True))
                rate = f"{statistics.median(found):>9.1f}"
                times = "" if loop == "ours" else f"{ratio:>9.2f}x"
                print(f"{model:<14}{batch:>6}  {loop:<10}{rate}{times}", flush=True)
                row = {"model": model, "batch": batch, "loop": loop}
                rows.append({**row, "steps_per_second": found, "ours_is": ratio})
    if not options.pythae:
        print("pythae was left out; name its interpreter with --pythae")
    if options.out:
        write(rows, options.out, pythae=options.pythae)


def write(rows: list[dict[str, Any]], path: Path, *, pythae: str | None) -> None:
    """Write the rates of every loop in every round, and the median of our speed-up."""
    from disentwine.runs.checkpoint import versions
    from disentwine.runs.storage import write_atomically

    record = {
        "command": shlex.join("PYTHON" if w == pythae else w for w in ["python", *sys.argv]),
        "versions": versions(),
        "machine": {"cores": os.cpu_count()},
        "rows": rows,
    }
    write_atomically(path, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
