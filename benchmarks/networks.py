"""Reconstruction error of a VAE with each network after the same processor time.

python benchmarks/networks.py [--seconds 60] [--seeds 0 1 2] [--rates 0.001 0.003] [--data pendulum]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from disentwine import VAE
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.data import Pendulum, Shapes2D
from disentwine.nn.encoders import ENCODERS
from disentwine.training.loop import keep_freed_memory
from disentwine.training.options import TrainingOptions
from disentwine.training.trainer import Trainer

DATA = {"pendulum": lambda: Pendulum(size=64), "shapes2d": Shapes2D}


def train_for(
    network: str, dataset: Dataset, *, rate: float, seconds: float, seed: int
) -> tuple[int, float]:
    """Steps made in so many seconds of processor time, and the validation error they reached."""
    torch.manual_seed(seed)
    trainer = Trainer(
        VAE.for_data(dataset, network=network),
        dataset,
        TrainingOptions(steps=10**6, batch_size=64, learning_rate=rate, device="cpu"),
        seed=seed,
    )
    start = time.process_time()
    while time.process_time() - start < seconds:
        trainer.update()
    images = dataset.images[evenly_spaced(dataset.split["validation"], 2000)]
    reconstructed = trainer.model.reconstruct(images)
    error = ((images / 255.0 - reconstructed / 255.0) ** 2).mean()
    return trainer.step, float(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 3e-3])
    parser.add_argument("--data", choices=DATA, default="pendulum")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    dataset = DATA[options.data]()
    print(
        f"{'network':<10}{'rate':>8}{'steps':>8}{'error':>10}   median of {len(options.seeds)} seeds, "
        f"{options.seconds:g} s of one core, {options.data} {dataset.image_shape}"
    )
    for network in ENCODERS:
        for rate in options.rates:
            runs = [
                train_for(network, dataset, rate=rate, seconds=options.seconds, seed=s)
                for s in options.seeds
            ]
            steps, error = (statistics.median(column) for column in zip(*runs, strict=True))
            print(f"{network:<10}{rate:>8g}{steps:>8.0f}{error:>10.5f}", flush=True)


if __name__ == "__main__":
    main()
