"""Probes: a regressor of concepts and a classifier of actions."""

from __future__ import annotations

from collections.abc import Callable
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
from disentwine.nn.images import CHUNK, evaluation_mode, map_images, to_unit_range
from disentwine.progress import ProgressBar
from disentwine.training.loop import keep_freed_memory

BATCH = 64

CONCEPT_PROBE_STEPS, CONCEPT_PROBE_LEARNING_RATE = 1000, 2e-3

ACTION_PROBE_STEPS, ACTION_PROBE_LEARNING_RATE = 4000, 1e-3

MOST_VALUES = 10_000

FEATURES = 128


@dataclass(frozen=True)
class ConceptProbe:
    """A regressor of concepts from images, made by `train_probe`.

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
        return _predict(self.network, images) * self.scale + self.mean


def train_probe(
    dataset: Dataset,
    *,
    seed: int = 0,
    steps: int = CONCEPT_PROBE_STEPS,
    progress: bool | None = None,
) -> ConceptProbe:
    """Train a regressor of every concept of a data set on its training images.

    Interventions make combinations that never occur in the data, such as a shadow away from where
    the light would cast it. Where the data set has a simulator, every other training image is
    rendered with concepts set at random, so that the probe cannot infer one concept from others.

    Arguments:
        dataset: its "train" split is learnt from; the error is measured on its "test" split (or
            else on "validation").
        seed: of the weights and of the order of images; the same seed gives the same probe.
        steps: updates, about 40 a second on one core for images of 64 x 64.
        progress: show a bar; by default on a terminal only.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> probe = train_probe(pendulum, steps=2)
    >>> probe(pendulum.images[:5]).shape, probe.error.shape
    ((5, 4), (4,))
    """
    train = dataset.split["train"]
    labels = dataset.factors[train]
    known = np.isfinite(labels)
    if not dataset.names or not known.any(axis=0).all():
        raise DataError("a concept probe needs labels: give every factor some, and at least one")
    mean, scale = np.nanmean(labels, axis=0), np.nanstd(labels, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    if isinstance(dataset, Simulates):  # which renders whole scenes only
        train = train[known.all(axis=1)]
    if not len(train):
        raise DataError("a concept probe renders scenes: give some images every label")
    rng = np.random.default_rng(seed)
    pool = dataset.factors[rng.choice(train, MOST_VALUES)]
    keep_freed_memory()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ENCODERS["compact"](dataset.image_shape, len(dataset.names))

    def error() -> Tensor:
        images, values = _batch(dataset, train, pool, rng)
        u = torch.from_numpy((values - mean) / scale).float()
        x = to_unit_range(torch.from_numpy(images))
        return torch.nan_to_num(network(x) - u).square().mean()

    with ProgressBar("concept probe", total=steps, show=progress) as bar:
        _train(network, error, steps, learning_rate=CONCEPT_PROBE_LEARNING_RATE, bar=bar)
    held_out = dataset.split["test"] if len(dataset.split["test"]) else dataset.split["validation"]
    truth = (dataset.factors[held_out] - mean) / scale
    missed = _predict(network, dataset.images[held_out]) - truth
    return ConceptProbe(network, dataset.names, mean, scale, np.sqrt(np.nanmean(missed**2, axis=0)))


@torch.enable_grad()
def _train(
    network: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    *,
    learning_rate: float,
    bar: ProgressBar | None = None,
) -> None:
    """Minimise a loss of random batches by Adam, with a learning rate that falls to zero.

    Arguments:
        network: in evaluation mode afterwards.
        loss: of a new batch.
        steps: updates.
        learning_rate: of the first update.
        bar: is advanced, if there is one.
    """
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
    for step in range(steps):
        error = loss()
        optimizer.zero_grad(set_to_none=True)
        error.backward()  # type: ignore[no-untyped-call]
        for group in optimizer.param_groups:
            group["lr"] = linear(step, start=learning_rate, end=0.0, steps=steps)
        optimizer.step()
        if bar is not None:
            bar.advance({"error": error.item()} if step % 50 == 0 else None)
    network.eval()


_PROBES: dict[tuple[str, int], ConceptProbe] = {}


def cached_probe(key: str, dataset: Callable[[], Dataset], *, steps: int) -> ConceptProbe:
    """The concept probe of a data set, trained once in a process; studies measure many runs with it.

    Arguments:
        key: identifies the data set.
        dataset: makes it.
        steps: updates of the probe.
    """
    if (key, steps) not in _PROBES:
        _PROBES[key, steps] = train_probe(dataset(), steps=steps)
    return _PROBES[key, steps]


def _predict(network: nn.Module, images: UInt8Array) -> FloatArray:
    standardised = map_images(network, images, lambda x, rows: network(x))
    return np.asarray(standardised, dtype=np.float64)


def _batch(
    dataset: Dataset, train: IndexArray, pool: FloatArray, rng: np.random.Generator
) -> tuple[UInt8Array, FloatArray]:
    """Images of `train` and their factors, half of them rendered with concepts of `pool`."""
    indices = rng.choice(train, BATCH)
    images, factors = dataset.images[indices], dataset.factors[indices]
    if not isinstance(dataset, Simulates):
        return images, factors
    half = BATCH // 2
    do = {
        factor.name: np.where(rng.random(half) < 0.5, own, drawn_values(factor, column, half, rng))
        for factor, own, column in zip(dataset.spec, factors[:half].T, pool.T, strict=True)
    }
    drawn = rerender(dataset, indices[:half], do)
    return (
        np.concatenate([drawn.images, images[half:]]),
        np.concatenate([drawn.factors, factors[half:]]),
    )


class ActionProbe(nn.Module):
    """Siamese classifier: one encoder for both images, a network on both features and their difference.

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
    """Train a classifier of actions on the training pairs.

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
    table = pairs.pairs["train"]

    def loss() -> Tensor:
        x, y, action = pairs.batch(table[rng.integers(len(table), size=BATCH)])
        logits = network(*(to_unit_range(torch.from_numpy(z)) for z in (x, y)))
        return nn.functional.cross_entropy(logits, torch.from_numpy(action))

    _train(network, loss, steps, learning_rate=ACTION_PROBE_LEARNING_RATE)
    return network
