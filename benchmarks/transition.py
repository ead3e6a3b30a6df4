"""The causal transition layer: pair networks in factors against networks on concatenated pairs.

    python benchmarks/transition.py [--threads 2]

Both compute the same (to 1e-5), of the same weights, for the same batch, in one run. The plain way asks
one action after the other, each time its network and that of no action on all pairs $[x_i, x_j]$, and
attends anew; the layer tries all actions at once. Times are seconds of the processor, the best of several
rounds, interleaved, so that a busy machine disturbs neither.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from disentwine.nn.pairs import Activation
from disentwine.nn.transition import ActionGraph, TransitionLayer
from disentwine.training.memory import keep_freed_memory

BATCH, ACTIONS, CODEBOOKS, POSITIONS, CODES, DIMENSIONS = 8, 12, 4, 16, 64, 16
HIDDEN = 128
ROUNDS = 7
TABLE = torch.randn(CODEBOOKS, CODES, DIMENSIONS, generator=torch.Generator().manual_seed(0))


def plain(layer: TransitionLayer, vectors: Tensor) -> Tensor:
    """Causal mode by a loop over actions: log-probabilities (n, actions, nodes, codes)."""
    answers = []
    for action in range(layer.actions):
        x = layer.nodes(vectors, TABLE)
        mask = layer.touch(x)[..., action].sigmoid()[:, None]
        alpha = layer.pairs.concatenated(x, action)[:, None]
        alpha_none = layer.pairs.concatenated(x, layer.actions)[:, None]
        on = mask[..., None]
        edges = on * alpha.sigmoid() + (1 - on) * alpha_none.sigmoid()
        graph = ActionGraph(edges, mask, alpha, alpha_none)
        chosen = torch.full((len(x), 1), action)
        answers.append(layer.become(x, graph, TABLE, chosen))
    return torch.cat(answers, dim=1)


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


@torch.no_grad()
def compare(activation: Activation) -> None:
    torch.manual_seed(0)
    layer = TransitionLayer(
        actions=ACTIONS,
        codebooks=CODEBOOKS,
        positions=POSITIONS,
        codes=CODES,
        dimensions=DIMENSIONS,
        hidden=HIDDEN,
        activation=activation,
    ).eval()
    vectors = torch.randn(BATCH, CODEBOOKS, POSITIONS, DIMENSIONS)
    x = layer.nodes(vectors, TABLE)
    pairs = {
        "all pair networks": (
            lambda: layer.pairs(x),
            lambda: [layer.pairs.concatenated(x, a) for a in range(ACTIONS + 1)],
        ),
        "graphs of all actions": (
            lambda: layer.graph(x),
            lambda: [
                layer.pairs.concatenated(x, network)
                for action in range(ACTIONS)
                for network in (action, ACTIONS)
            ],
        ),
        "causal mode, all actions": (
            lambda: layer(vectors, TABLE),
            lambda: plain(layer, vectors),
        ),
    }
    quick, slow = layer(vectors, TABLE)[0][:, :-1], plain(layer, vectors)
    difference = ((quick - slow).abs() / slow.abs().clamp(min=1)).max().item()
    print(
        f"{activation}: largest difference of a log-probability {difference:.1e}, of its size above 1"
    )
    assert difference < 1e-5
    for name, (ours, plainly) in pairs.items():
        times = [(seconds(ours), seconds(plainly)) for _ in range(ROUNDS)]
        best = [min(column) for column in zip(*times, strict=True)]
        print(f"  {name}: {best[0]:.4f} s against {best[1]:.4f} s, {best[1] / best[0]:.1f} times")


def main() -> None:
    keep_freed_memory()  # neither way is to wait for the system
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print(
        f"{BATCH} images, {ACTIONS} actions, {CODEBOOKS * POSITIONS} nodes of 64 numbers, {HIDDEN} hidden"
    )
    for activation in ("sine", "relu"):
        compare(activation)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
