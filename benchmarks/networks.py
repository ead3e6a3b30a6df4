"""The three networks on equal terms: reconstruction error of a VAE after the same processor time.

python benchmarks/networks.py [--seconds 60] [--seeds 0 1 2]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from disentwine import VAE, data
from disentwine.training.memory import keep_freed_memory
from disentwine.training.trainer import Trainer


def train_for(
    network: str, pendulum: data.Pendulum, *, seconds: float, seed: int
) -> tuple[int, float]:
    """Steps made in so many seconds of processor time, and the validation error they reached."""
    torch.manual_seed(seed)
    trainer = Trainer(
        VAE.for_data(pendulum, network=network),
        pendulum,
        steps=10**6,
        batch_size=64,
        learning_rate=1e-3,
        clip_norm=None,
        precision="32-true",
        device="cpu",
        seed=seed,
    )
    start = time.process_time()
    while time.process_time() - start < seconds:
        trainer.update()
    images = pendulum.images[pendulum.split["validation"]]
    reconstructed = trainer.model.reconstruct(images)
    error = ((images / 255.0 - reconstructed / 255.0) ** 2).mean()
    return trainer.step, float(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    pendulum = data.Pendulum(size=64)
    print(
        f"{'network':<10}{'steps':>8}{'error':>10}   median of {len(options.seeds)} seeds, "
        f"{options.seconds:g} s of one core, 64x64x3"
    )
    for network in ("standard", "compact", "mlp"):
        runs = [
            train_for(network, pendulum, seconds=options.seconds, seed=s) for s in options.seeds
        ]
        steps, errors = zip(*runs, strict=True)
        print(f"{network:<10}{statistics.median(steps):>8.0f}{statistics.median(errors):>10.5f}")


if __name__ == "__main__":
    main()
