"""The causal transition layer: factored pair networks and networks on concatenated pairs.

    python benchmarks/transition.py [--widths 16 64 128] [--threads 1] [--out results]

Both compute the same (to 1e-5) from the same weights, for the same batch, in one run. The plain version
computes one action after the other, each time its network and that of no action on all pairs $[x_i, x_j]$,
with a new attention; the layer computes all actions at once. Times are processor seconds, the best of
several rounds in which all widths, activations and versions alternate, so that other load affects all.

Ends with an error if the two differ, or if causal mode with sine activations, as in all ready recipes,
and 128 hidden units is not 20 times as fast. Narrower networks are a smaller part of the computation, and
relu needs distances instead of products: their speed-up is printed, not required.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from disentwine.nn.graph_layers import Activation
from disentwine.nn.transition import ITSELF, ActionGraph, TransitionLayer
from disentwine.runs.provenance import versions
from disentwine.runs.storage import make_folder, write_atomically
from disentwine.training.loop import keep_freed_memory

Setting = tuple[Activation, int]
"""Of the pair networks: what is between their layers, and how many units are hidden."""

BATCH, ACTIONS, CODEBOOKS, CODES, DIMENSIONS = 8, 12, 4, 64, 16
GRID = (4, 4)
POSITIONS = GRID[0] * GRID[1]
WIDTHS = (16, 64, 128)
CAUSAL = "causal mode, all actions"
LARGEST_DIFFERENCE, LEAST_RATIO = 1e-5, 20.0
CLAIMED: Setting = ("sine", 128)
"""Where the ratio is claimed."""
TABLE = torch.randn(CODEBOOKS, CODES, DIMENSIONS, generator=torch.Generator().manual_seed(0))

Ways = tuple[Callable[[], object], Callable[[], object]]


def plain(layer: TransitionLayer, vectors: Tensor) -> Tensor:
    """Causal mode by a loop over actions: log-probabilities (n, actions, nodes, codes)."""
    answers = []
    x = layer.nodes(vectors, TABLE)
    for action in range(layer.actions):
        placed, itself = layer.placed(x), ITSELF * torch.eye(x.shape[1])
        mask = layer.touch(placed)[..., action].sigmoid()[:, None]
        alpha = layer.pairs.concatenated(placed, action)[:, None] + itself
        alpha_none = layer.pairs.concatenated(placed, layer.actions)[:, None] + itself
        on = mask[..., None]
        edges = on * alpha.sigmoid() + (1 - on) * alpha_none.sigmoid()
        graph = ActionGraph(edges, mask, alpha, alpha_none)
        chosen = torch.full((len(x), 1), action)
        answers.append(layer.become(x, graph, TABLE, chosen))
    return torch.cat(answers, dim=1)


def layer_and_codes(activation: Activation, hidden: int) -> tuple[TransitionLayer, Tensor]:
    torch.manual_seed(0)
    layer = TransitionLayer(
        actions=ACTIONS,
        codebooks=CODEBOOKS,
        grid=GRID,
        codes=CODES,
        dimensions=DIMENSIONS,
        hidden=hidden,
        activation=activation,
    )
    return layer.eval(), torch.randn(BATCH, CODEBOOKS, POSITIONS, DIMENSIONS)


def difference(layer: TransitionLayer, vectors: Tensor) -> float:
    """Of log-probabilities, the largest there is; of its size where that is above 1."""
    quick, slow = layer(vectors, TABLE)[0][:, :-1], plain(layer, vectors)
    return float(((quick - slow).abs() / slow.abs().clamp(min=1)).max())


def both_ways(layer: TransitionLayer, vectors: Tensor) -> dict[str, Ways]:
    """The same work by the layer, and plainly."""
    x = layer.nodes(vectors, TABLE)
    placed = layer.placed(x)
    return {
        "all pair networks": (
            lambda: layer.pairs(placed),
            lambda: [layer.pairs.concatenated(placed, a) for a in range(ACTIONS + 1)],
        ),
        "graphs of all actions": (
            lambda: layer.graph(x),
            lambda: [
                layer.pairs.concatenated(placed, network)
                for action in range(ACTIONS)
                for network in (action, ACTIONS)
            ],
        ),
        CAUSAL: (lambda: layer(vectors, TABLE), lambda: plain(layer, vectors)),
    }


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


@torch.no_grad()
def measure(widths: list[int], *, rounds: int) -> list[dict[str, Any]]:
    """A row for each width, activation and work."""
    settings: list[Setting] = list(product(get_args(Activation), widths))
    made = {setting: layer_and_codes(*setting) for setting in settings}
    apart = {setting: difference(*given) for setting, given in made.items()}
    work = {(s, name): ways for s in settings for name, ways in both_ways(*made[s]).items()}
    best = {key: [float("inf")] * 2 for key in work}
    for _ in range(rounds):
        for key, ways in work.items():
            best[key] = [min(b, seconds(way)) for b, way in zip(best[key], ways, strict=True)]
    return [
        {
            "activation": activation,
            "hidden": hidden,
            "work": name,
            "seconds": ours,
            "plain_seconds": plainly,
            "ratio": plainly / ours,
            "difference": apart[activation, hidden],
        }
        for ((activation, hidden), name), (ours, plainly) in best.items()
    ]


def faults(rows: list[dict[str, Any]]) -> list[str]:
    """What is not as it should be."""
    wrong = [
        f"{row['activation']}, {row['hidden']} hidden: outputs differ by {row['difference']:.1e}"
        for row in rows
        if row["work"] == CAUSAL and not row["difference"] < LARGEST_DIFFERENCE
    ]
    return wrong + [
        f"{row['activation']}, {row['hidden']} hidden: only {row['ratio']:.1f} times as fast"
        for row in rows
        if row["work"] == CAUSAL and (row["activation"], row["hidden"]) == CLAIMED
        if not row["ratio"] >= LEAST_RATIO
    ]


def main() -> None:
    keep_freed_memory()  # neither way is to wait for the system
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS, help="hidden units")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="studies train with one each")
    parser.add_argument("--out", type=Path, help="folder to write transition.json to")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    nodes = CODEBOOKS * POSITIONS
    print(
        f"{BATCH} images, {ACTIONS} actions, {nodes} nodes of 64 numbers, {options.threads} threads"
    )
    rows = measure(list(options.widths), rounds=options.rounds)
    for row in rows:
        print(
            f"{row['activation']:<5}{row['hidden']:>4} hidden, {row['work']:<25}"
            f"{row['seconds']:.4f} s against {row['plain_seconds']:.4f} s,{row['ratio']:>6.1f} times;"
            f" difference {row['difference']:.0e}"
        )
    if options.out is not None:
        record = {
            "study": "transition",
            "command": f"python {' '.join(sys.argv)}",
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "machine": {
                "cpu": platform.machine(),
                "cores": os.cpu_count(),
                "threads": options.threads,
                "load": os.getloadavg()[0],
            },
            "rows": rows,
        }
        path = make_folder(options.out) / "transition.json"
        write_atomically(path, json.dumps(record, indent=1) + "\n")
    wrong = faults(rows)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
