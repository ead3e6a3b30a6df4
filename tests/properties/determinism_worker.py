"""Digests of every model after three updates from a seed: python determinism_worker.py SEED."""

import hashlib
import json
import sys

import safetensors.torch
import torch

from disentwine.core.random import fixed_noise
from disentwine.data import Arrays, Pendulum
from disentwine.models import MODELS
from disentwine.runs.fit import fit
from disentwine.testing import small_grid


def some_images() -> Arrays:
    """A grid of 28 angles and 3 lights."""
    pendulum = Pendulum(size=32)
    some = slice(0, 28 * 87, 29)
    return Arrays(
        images=pendulum.images[some],
        factors=pendulum.factors[some],
        names=pendulum.names,
        edges=list(pendulum.graph.edges),
    )


def digests(seed: int) -> dict[str, str]:
    """SHA-256 of the weights of every model."""
    pendulum, found = some_images(), {}
    for name, cls in MODELS.items():
        acts = "actions" in cls.fixed_by_data
        dataset = small_grid((16, 16, 1)) if acts else pendulum
        options = {"pretrain_steps": 1} if acts else {}
        with fixed_noise(seed):
            model = cls.for_data(dataset, **options)
        settings = {"batch_size": 16, "threads": 1, "progress": False}
        fit(model, dataset, steps=3, save_every=3, seed=seed, **settings)
        weights = {k: v.contiguous() for k, v in model.state_dict().items()}
        found[name] = hashlib.sha256(safetensors.torch.save(weights)).hexdigest()
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(digests(int(sys.argv[1]))))
