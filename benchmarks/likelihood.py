"""Time and memory of the importance-weighted bound of a five-layer model.

    python benchmarks/likelihood.py [--images 1000] [--samples 5000]

Latents of 64-32-16-8-4 dimensions under 28x28 images, networks of 512 to 32 units: the sizes of the
Ladder VAE's table. The model is not trained; only time and memory matter here.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.contracts.model import Batch, Losses, Model
from disentwine.data import Arrays
from disentwine.nn.gaussian import DiagonalGaussian
from disentwine.nn.perceptron import perceptron
from disentwine.objectives.elbo import bernoulli_log_likelihood
from disentwine.report.likelihood import log_likelihood

LATENTS, HIDDEN, PIXELS = (64, 32, 16, 8, 4), (512, 256, 128, 64, 32), 28 * 28


class FiveLayers(Model):
    """q(z_1|x) q(z_2|z_1) ... q(z_5|z_4) below p(z_5) p(z_4|z_5) ... p(x|z_1)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (PIXELS, *LATENTS)
        layers = list(zip(sizes, LATENTS, HIDDEN, strict=False))
        self.up = nn.ModuleList(perceptron([a, h, h, 2 * b]) for a, b, h in layers)
        self.down = nn.ModuleList(perceptron([b, h, h, 2 * a]) for a, b, h in layers[1:])
        self.out = perceptron([LATENTS[0], HIDDEN[0], HIDDEN[0], PIXELS])

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        below = x.flatten(1).repeat(samples, 1)
        log_w = torch.zeros(len(below))
        drawn = []
        for layer in self.up:
            q = DiagonalGaussian.from_features(layer(below))
            below = q.sample()
            drawn.append(below)
            log_w -= normal(below, q.mean, q.log_variance)
        log_w += normal(drawn[-1], torch.zeros(()), torch.zeros(()))
        for layer, z, above in zip(self.down, drawn, drawn[1:], strict=False):
            p = DiagonalGaussian.from_features(layer(above))
            log_w += normal(z, p.mean, p.log_variance)
        log_w += bernoulli_log_likelihood(x.flatten(1).repeat(samples, 1), self.out(drawn[0]))
        return log_w.view(samples, len(x))

    def loss(self, batch: Batch) -> Losses:
        return Losses({"bound": -self.log_weights(batch.x, samples=1)[0]})

    def represent(self, x: Any) -> Any:
        return self.up[0](x.flatten(1))

    def reconstruct(self, x: Any) -> Any:
        return x


def normal(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    squares = (z - mean).square() / log_variance.exp() + log_variance + math.log(2 * math.pi)
    return -0.5 * squares.sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=5000)
    options = parser.parse_args()
    torch.manual_seed(0)
    digits = np.random.default_rng(0).integers(0, 2, (options.images, 28, 28, 1), dtype=np.uint8)
    dataset = Arrays(images=digits * 255)
    start = time.perf_counter()
    score = log_likelihood(
        FiveLayers(), dataset, np.arange(options.images), samples=options.samples
    )
    seconds = time.perf_counter() - start
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{options.samples} samples x {score.n} images of a five-layer model: {seconds:.0f} s, "
        f"{gigabytes:.2f} GB at most, bound {score.value:.2f} nats"
    )


if __name__ == "__main__":
    main()
