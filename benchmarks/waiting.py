"""Spin count of idle threads: steps per second of our loop alone, and of two that share the cores.

Each spin count has its own process; the processes take turns. Then two processes with the same count run
at once. Count 0 is `OMP_WAIT_POLICY=PASSIVE`.

    python benchmarks/waiting.py [--counts 0 4000 8000 15000 30000]
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
from multiprocessing.connection import Connection

from training import ours, work

CONTEXT = mp.get_context("spawn")


def wait_and_work(pipe: Connection, count: int, network: str) -> None:
    if count:
        os.environ["GOMP_SPINCOUNT"] = str(count)
    else:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    work(pipe, ours, network)


def start(count: int, network: str) -> Connection:
    here, there = CONTEXT.Pipe()
    CONTEXT.Process(target=wait_and_work, args=(there, count, network)).start()
    here.recv()
    return here


def alone(counts: list[int], network: str) -> list[float]:
    """Median rate of each count, the counts taking turns."""
    pipes = [start(count, network) for count in counts]
    rates: list[list[float]] = [[] for _ in counts]
    for _ in range(5):
        for pipe, kept in zip(pipes, rates, strict=True):
            pipe.send(3)
            kept.append(pipe.recv())
    for pipe in pipes:
        pipe.send(None)
    return [statistics.median(kept) for kept in rates]


def shared(count: int, network: str) -> float:
    """The sum of the rates of two processes at once."""
    pipes = [start(count, network) for _ in range(2)]
    for pipe in pipes:
        pipe.send(5)
    total: float = sum(pipe.recv() for pipe in pipes)
    for pipe in pipes:
        pipe.send(None)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", nargs="+", type=int, default=[0, 4000, 8000, 15000, 30000])
    counts = parser.parse_args().counts
    print(f"{'network':<10}{'count':>8}{'alone':>8}{'two':>8}   steps per second")
    for network in ("compact", "standard"):
        for count, rate in zip(counts, alone(counts, network), strict=True):
            print(f"{network:<10}{count:>8}{rate:>8.1f}{shared(count, network):>8.1f}", flush=True)


if __name__ == "__main__":
    main()
