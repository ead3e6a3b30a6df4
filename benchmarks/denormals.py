"""What numbers below 1.2e-38 cost: gradients of a softmax that rules everything else out by so many nats.

python benchmarks/denormals.py [--nats 20 95 120] [--repeats 30]
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional as F

from disentwine.training.denormals import without_denormals
from disentwine.training.memory import keep_freed_memory

SAMPLES, WIDTH, LAYERS, ACTIONS = 512, 256, 4, 12


def seconds(network: nn.Module, x: torch.Tensor, nats: float, *, repeats: int) -> float:
    """Of one forward and backward pass of a loss that is so sure of the first action."""
    surely = torch.zeros(ACTIONS)
    surely[0] = nats
    own = torch.zeros(len(x), dtype=torch.long)

    def update() -> None:
        network.zero_grad()
        # The network says little so far: what it says decides nothing, as in a training that is done.
        F.cross_entropy(0.01 * network(x) + surely, own).backward()

    update()
    start = time.process_time()
    for _ in range(repeats):
        update()
    return (time.process_time() - start) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nats", type=float, nargs="+", default=[20, 95, 120])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.SiLU())]
    network = nn.Sequential(*layers, nn.Linear(WIDTH, ACTIONS))
    x = torch.randn(SAMPLES, WIDTH)
    print(f"{'nats':>6}{'as they are':>14}{'counted as 0':>14}{'ratio':>8}   ms a pass, one core")
    for nats in options.nats:
        times = []
        for context in (nullcontext(), without_denormals()):
            with context:
                times.append(1000 * seconds(network, x, nats, repeats=options.repeats))
        print(f"{nats:>6g}{times[0]:>14.2f}{times[1]:>14.2f}{times[0] / times[1]:>8.2f}")


if __name__ == "__main__":
    main()
