"""What a network that is trained for nothing else retrieves: (x, y) to the action between them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from disentwine.contracts.dataset import UInt8Array
from disentwine.contracts.transitions import Transitions
from disentwine.nn.modes import evaluating
from disentwine.nn.networks import ENCODERS
from disentwine.nn.pictures import CHUNK, to_unit_range
from disentwine.objectives.schedules import linear

FEATURES, ACTION_PROBE_BATCH, ACTION_PROBE_LEARNING_RATE = 128, 64, 1e-3
ACTION_PROBE_STEPS = 4000


class Siamese(nn.Module):
    """One encoder for both images, and a small network over its two answers and their difference.

    Arguments:
        image_shape: (height, width, channels).
        actions: how many.
    """

    def __init__(self, image_shape: tuple[int, int, int], actions: int) -> None:
        super().__init__()
        self.encoder = ENCODERS["normed"](image_shape, FEATURES)
        self.head = nn.Sequential(nn.Linear(3 * FEATURES, 128), nn.ReLU(), nn.Linear(128, actions))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        a, b = self.encoder(torch.cat([x, y])).chunk(2)
        logits: Tensor = self.head(torch.cat([a, b, b - a], dim=1))
        return logits

    def retrieve(self, x: UInt8Array, y: UInt8Array) -> NDArray[np.float32]:
        """(n, actions) probabilities."""
        with evaluating(self):
            parts = [
                self(*(to_unit_range(torch.from_numpy(z[i : i + CHUNK])) for z in (x, y)))
                for i in range(0, len(x), CHUNK)
            ]
        return torch.cat(parts).softmax(1).numpy()


def train_siamese(pairs: Transitions, *, steps: int = ACTION_PROBE_STEPS, seed: int = 0) -> Siamese:
    """Learn to tell actions from the training pairs.

    Arguments:
        pairs: of a data set.
        steps: updates.
        seed: of the weights and of the pairs' order.

    >>> from disentwine.data.transitions import transitions
    >>> from disentwine.testing import small_grid
    >>> pairs = transitions(small_grid((16, 16, 1)))
    >>> images = pairs.dataset.images
    >>> train_siamese(pairs, steps=1).retrieve(images[:5], images[5:10]).shape
    (5, 4)
    """
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Siamese(pairs.dataset.image_shape, len(pairs.actions))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.Adam(network.parameters(), lr=ACTION_PROBE_LEARNING_RATE, fused=True)
    table = pairs.pairs["train"]
    with torch.enable_grad():
        for step in range(steps):
            x, y, action = pairs.batch(table[rng.integers(len(table), size=ACTION_PROBE_BATCH)])
            logits = network(*(to_unit_range(torch.from_numpy(z)) for z in (x, y)))
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(action))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            for group in optimiser.param_groups:
                group["lr"] = linear(step, start=ACTION_PROBE_LEARNING_RATE, end=0.0, steps=steps)
            optimiser.step()
    return network.eval()
