"""Concept regressor; action classifier baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from disentwine.core.dataset import Dataset, Simulates, Transitions
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.data.simulation import rerender
from disentwine.errors import DataError
from disentwine.evaluation.counterfactuals import drawn_values
from disentwine.losses.schedules import linear
from disentwine.nn.encoders import ENCODERS
from disentwine.nn.images import CHUNK, answer_in_kind, evaluation_mode, to_unit_range
from disentwine.progress import ProgressBar
from disentwine.training.loop import keep_freed_memory

CONCEPT_PROBE_STEPS, CONCEPT_PROBE_BATCH, CONCEPT_PROBE_LEARNING_RATE = 1000, 64, 2e-3

MOST_VALUES = 10_000


@dataclass(frozen=True)
class Reader:
    """What `train_concept_probe` makes; called with images, it answers the value of each concept.

    Arguments:
        network: from images to standardised concepts.
        names: of the concepts, k of them.
        mean: (k,) of the training labels.
        scale: (k,) their standard deviations.
        error: (k,) root mean square error on held-out images, in those standard deviations.
    """

    network: nn.Module
    names: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray
    error: FloatArray

    def __call__(self, images: UInt8Array) -> FloatArray:
        """The concepts (n, k) of images (n, height, width, channels), in the labels' own units."""
        return _read(self.network, images) * self.scale + self.mean


@torch.enable_grad()
def train_concept_probe(
    dataset: Dataset,
    *,
    seed: int = 0,
    steps: int = CONCEPT_PROBE_STEPS,
    progress: bool | None = None,
) -> Reader:
    """Learn to read every concept of a data set from its training images.

    An intervention makes combinations that never occur in the data, such as a shadow away from where
    the light would throw it. Where the data set can draw them, every other training image is one
    whose concepts were set at random, so that none is worked out from the others.

    Arguments:
        dataset: its "train" split is learnt from, its "test" split (or else "validation") measures
            the error.
        seed: of the weights and of the images' order; the same seed gives the same reader.
        steps: updates to make, about 40 a second on one core for images of 64 x 64.
        progress: show the bar; by default on a terminal only.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> reader = train_concept_probe(pendulum, steps=2)
    >>> reader(pendulum.images[:5]).shape, reader.error.shape
    ((5, 4), (4,))
    """
    train = dataset.split["train"]
    labels = dataset.factors[train]
    known = np.isfinite(labels)
    if not dataset.names or not known.any(axis=0).all():
        raise DataError("a reader learns from labels: give every factor some, and at least one")
    mean, scale = np.nanmean(labels, axis=0), np.nanstd(labels, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    if isinstance(dataset, Simulates):  # which redraws whole scenes only
        train = train[known.all(axis=1)]
    if not len(train):
        raise DataError("a reader redraws scenes: give some images every label")
    rng = np.random.default_rng(seed)
    pool = dataset.factors[rng.choice(train, MOST_VALUES)]
    keep_freed_memory()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ENCODERS["compact"](dataset.image_shape, len(dataset.names))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.Adam(network.parameters(), lr=CONCEPT_PROBE_LEARNING_RATE, fused=True)
    with ProgressBar("reader of concepts", total=steps, show=progress) as bar:
        for step in range(steps):
            images, values = _batch(dataset, train, pool, rng)
            x = to_unit_range(torch.from_numpy(images))
            u = torch.from_numpy((values - mean) / scale).float()
            error = torch.nan_to_num(network(x) - u).square().mean()
            optimiser.zero_grad(set_to_none=True)
            error.backward()  # type: ignore[no-untyped-call]
            for group in optimiser.param_groups:
                group["lr"] = linear(step, start=CONCEPT_PROBE_LEARNING_RATE, end=0.0, steps=steps)
            optimiser.step()
            bar.advance({"error": error.item()} if step % 50 == 0 else None)
    network.eval()
    held_out = dataset.split["test"] if len(dataset.split["test"]) else dataset.split["validation"]
    missed = _read(network, dataset.images[held_out]) - (dataset.factors[held_out] - mean) / scale
    return Reader(network, dataset.names, mean, scale, np.sqrt(np.nanmean(missed**2, axis=0)))


def _read(network: nn.Module, images: UInt8Array) -> FloatArray:
    standardised = answer_in_kind(network, images, lambda x, rows: network(x))
    return np.asarray(standardised, dtype=np.float64)


def _batch(
    dataset: Dataset, train: IndexArray, pool: FloatArray, rng: np.random.Generator
) -> tuple[UInt8Array, FloatArray]:
    """Images of `train` and their factors, half of them redrawn with concepts of `pool`."""
    indices = rng.choice(train, CONCEPT_PROBE_BATCH)
    images, factors = dataset.images[indices], dataset.factors[indices]
    if not isinstance(dataset, Simulates):
        return images, factors
    half = CONCEPT_PROBE_BATCH // 2
    do = {
        factor.name: np.where(rng.random(half) < 0.5, own, drawn_values(factor, column, half, rng))
        for factor, own, column in zip(dataset.spec, factors[:half].T, pool.T, strict=True)
    }
    drawn = rerender(dataset, indices[:half], do)
    return (
        np.concatenate([drawn.images, images[half:]]),
        np.concatenate([drawn.factors, factors[half:]]),
    )


FEATURES, ACTION_PROBE_BATCH, ACTION_PROBE_LEARNING_RATE = 128, 64, 1e-3

ACTION_PROBE_STEPS = 4000


class ActionProbe(nn.Module):
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
        with evaluation_mode(self):
            parts = [
                self(*(to_unit_range(torch.from_numpy(z[i : i + CHUNK])) for z in (x, y)))
                for i in range(0, len(x), CHUNK)
            ]
        return torch.cat(parts).softmax(1).numpy()


def train_action_probe(
    pairs: Transitions, *, steps: int = ACTION_PROBE_STEPS, seed: int = 0
) -> ActionProbe:
    """Learn to tell actions from the training pairs.

    Arguments:
        pairs: of a data set.
        steps: updates.
        seed: of the weights and of the pairs' order.

    >>> from disentwine.data.transitions import transitions
    >>> from disentwine.testing import small_grid
    >>> pairs = transitions(small_grid((16, 16, 1)))
    >>> images = pairs.dataset.images
    >>> train_action_probe(pairs, steps=1).retrieve(images[:5], images[5:10]).shape
    (5, 4)
    """
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ActionProbe(pairs.dataset.image_shape, len(pairs.actions))
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
