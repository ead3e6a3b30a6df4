"""Compare the graph networks of CT-VAE's transition layer: attention and message passing on the grid.

    python benchmarks/messages.py runs/ctvae/dsprites-... [--updates 1600] [--out results]

Takes the autoencoder of a trained ct-vae and trains each network on $-\\log p(L_y | L_x, a)$ alone, from
the codes of the same training pairs. Reports the nats of all codes of y and the action accuracy of the
most probable action on validation pairs, and CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine import load_run
from disentwine.core.dataset import Dataset
from disentwine.data.transitions import transitions
from disentwine.losses.transition import negative_log_likelihood
from disentwine.models import CTVAE
from disentwine.nn.transition import TransitionLayer, TransitionOptions
from disentwine.runs.checkpoint import versions
from disentwine.runs.storage import make_folder, write_atomically
from disentwine.training.loop import keep_freed_memory

PAIRS, VALIDATION_PAIRS, BATCH, CHUNK = 12_000, 600, 64, 200
RATE, LAST_RATE = 0.002, 0.0001
NETWORKS: dict[str, dict[str, Any]] = {
    "attention": {"message_passing": "attention"},
    **{f"grid, {n} layers": {"message_passing": "grid", "num_layers": n} for n in (1, 2, 3)},
}

Pairs = tuple[Tensor, Tensor, Tensor]
"""Codes of x and of y, (n, nodes), and the action (n,)."""


@torch.no_grad()
def pairs_of_codes(model: CTVAE, dataset: Dataset, part: str, most: int) -> Pairs:
    x, y, action = transitions(dataset).pairs[part][:most].T
    codes = torch.cat(
        [
            model.indices(torch.from_numpy(dataset.images[some]).permute(0, 3, 1, 2) / 255)
            for some in np.array_split(np.concatenate([x, y]), max(1, 2 * len(x) // CHUNK))
        ]
    )
    return codes[: len(x)], codes[len(x) :], torch.from_numpy(action.copy())


def learn(model: CTVAE, layer: TransitionLayer, pairs: Pairs, *, updates: int) -> float:
    """Train a layer on pairs of codes; returns the CPU seconds."""
    x, y, action = pairs
    optimizer = torch.optim.Adam(layer.parameters(), lr=RATE, fused=True)
    start = time.process_time()
    for step in range(updates):
        optimizer.param_groups[0]["lr"] = RATE + (LAST_RATE - RATE) * step / updates
        rows = torch.randint(len(x), (BATCH,))
        log_p, _ = layer(model.look_up(x[rows]), model.table, action[rows, None])
        loss = negative_log_likelihood(log_p[:, 0], y[rows]).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return time.process_time() - start


@torch.no_grad()
def judge(model: CTVAE, layer: TransitionLayer, pairs: Pairs) -> tuple[float, float]:
    """Nats of all codes of y under the true action, and action accuracy."""
    fits = []
    for x, y in zip(*(codes.split(CHUNK) for codes in pairs[:2]), strict=True):
        log_p, _ = layer(model.look_up(x), model.table)
        fits.append(-negative_log_likelihood(log_p[:, :-1], y[:, None]))
    fit, action = torch.cat(fits), pairs[2]
    nats = -fit.gather(1, action[:, None]).mean()
    return nats.item(), (fit.argmax(1) == action).float().mean().item()


def main() -> None:
    keep_freed_memory()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a trained ct-vae")
    parser.add_argument("--updates", type=int, default=1600)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder to write messages.json to")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = load_run(options.run)
    model: CTVAE = run.model
    training, validation = (
        pairs_of_codes(model, run.dataset, part, most)
        for part, most in (("train", PAIRS), ("validation", VALIDATION_PAIRS))
    )
    rows = []
    for name, network in NETWORKS.items():
        torch.manual_seed(0)
        layer = TransitionLayer(
            actions=len(model.actions),
            num_codebooks=model.autoencoder.num_codebooks,
            grid=model.mcq_vae.grid,
            codebook_size=model.codebook_size,
            code_dim=model.autoencoder.code_dim,
            options=TransitionOptions(activation="sine", edges="expected", **network),
        )
        seconds = learn(model, layer, training, updates=options.updates)
        nats, accuracy = judge(model, layer.eval(), validation)
        rows.append({"network": name, "nats": nats, "accuracy": accuracy, "seconds": seconds})
        print(f"{name:<22}{nats:>7.1f} nats, {accuracy:>6.1%} action accuracy, {seconds:>5.0f} s")
    if options.out is not None:
        record = {
            "study": "messages",
            "command": f"python {' '.join(sys.argv)}",
            "run": run.recipe.to_yaml(),
            "pairs": {"train": len(training[0]), "validation": len(validation[0])},
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]},
            "rows": rows,
        }
        write_atomically(make_folder(options.out) / "messages.json", json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
