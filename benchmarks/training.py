"""Steps per second of our training loop and of a common one, interleaved in one run.

The common loop: float images, a shuffling DataLoader with 2 workers, default Adam, default memory
layout and allocator. Both train the same VAE on the same Pendulum images, each in its own process. The
processes take turns, so that other load slows both alike.

    [BATCH=64] python benchmarks/training.py [--rounds 6] [--seconds 5]
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from _timing import count_steps, usual_update

BATCH = int(os.environ.get("BATCH", "64"))


def ours(network: Any) -> Callable[[], None]:
    """One update of the loop of `fit`."""
    from disentwine import VAE, data
    from disentwine.training.loop import keep_freed_memory
    from disentwine.training.options import TrainingOptions
    from disentwine.training.trainer import Trainer

    keep_freed_memory()
    pendulum = data.Pendulum(size=64)
    trainer = Trainer(
        VAE.for_data(pendulum, network=network),
        pendulum,
        TrainingOptions(steps=10**6, batch_size=BATCH, learning_rate=1e-3, device="cpu"),
        seed=0,
    )
    return trainer.update


def usual(network: Any) -> Callable[[], None]:
    """One update of a common training loop."""
    import torch  # before disentwine, so that its threads wait as they do by default

    from disentwine import VAE, data

    pendulum = data.Pendulum(size=64)
    images = torch.from_numpy(pendulum.images[pendulum.split["train"]])
    floats = images.permute(0, 3, 1, 2).float().div(255).contiguous()
    model = VAE.for_data(pendulum, network=network)
    return usual_update(model, floats, batch=BATCH, learning_rate=1e-3)


def work(pipe: Connection, build: Callable[[Any], Callable[[], None]], network: str) -> None:
    """Build a loop, then run it for the seconds of each message and send its rate."""
    update = build(network)
    for _ in range(5):
        update()
    pipe.send("ready")
    while (seconds := pipe.recv()) is not None:
        steps, spent = count_steps(update, seconds)
        pipe.send(steps / spent)


def compare(network: str, *, rounds: int, seconds: float) -> tuple[list[float], list[float]]:
    """Steps per second of both loops in each round."""
    context = mp.get_context("spawn")
    pipes = []
    for build in (ours, usual):
        here, there = context.Pipe()
        context.Process(target=work, args=(there, build, network), daemon=False).start()
        here.recv()
        pipes.append(here)
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for pipe, found in zip(pipes, rates, strict=True):
            pipe.send(seconds)
            found.append(pipe.recv())
    for pipe in pipes:
        pipe.send(None)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--networks", nargs="+", default=["standard", "compact"])
    options = parser.parse_args()
    print(
        f"{'network':<10}{'ours':>8}{'usual':>8}{'ratio':>8}   steps per second, 64x64x3, batch {BATCH}"
    )
    for network in options.networks:
        a, b = compare(network, rounds=options.rounds, seconds=options.seconds)
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
        print(f"{network:<10}{statistics.median(a):>8.1f}{statistics.median(b):>8.1f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
