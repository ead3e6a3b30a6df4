"""Baselines: representations that need no network, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset
from disentwine.core.types import IndexArray, UInt8Array
from disentwine.errors import UsageError, did_you_mean
from disentwine.evaluation.disentanglement import MetricNames, score_latents
from disentwine.evaluation.evaluate import Evaluation
from disentwine.evaluation.held_out import LIMIT, held_out

BASELINES = ("pixels", "pca", "ica", "random-projection", "ground-truth")

LEARN_FROM = 5000
"""Training images that components are fitted to."""


def baseline_latents(
    name: str, dataset: Dataset, indices: IndexArray, *, components: int = 10, seed: int = 0
) -> NDArray[np.floating[Any]]:
    """The latents (n, d) of images under a baseline, which is fitted to the training split alone.

    Arguments:
        name: "pixels" (each is a latent), "pca", "ica", "random-projection", or "ground-truth" (the
            factors themselves are the latents).
        dataset: where images and factors come from.
        indices: which images to encode.
        components: the number of latents, where the baseline leaves it open.
        seed: of random projections and initialisations.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> baseline_latents("pca", pendulum, np.arange(7), components=3).shape
    (7, 3)
    """
    if name not in BASELINES:
        raise UsageError(f"there is no baseline '{name}'. {did_you_mean(name, BASELINES)}")
    if components < 1:
        raise UsageError(f"components: give 1 or more, got {components}")
    if name == "ground-truth":
        return dataset.factors[indices]
    pixels = flat(dataset.images[indices])
    if name == "pixels":
        return pixels
    train = np.random.default_rng(seed).permutation(dataset.split["train"])[:LEARN_FROM]
    components = min(components, len(train), pixels.shape[1])
    learner = _learner(name, components, seed).fit(flat(dataset.images[train]))
    return np.asarray(learner.transform(pixels), dtype=np.float32)


def evaluate_baseline(
    name: str,
    dataset: Dataset,
    metrics: MetricNames = "all",
    *,
    components: int = 10,
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
    limit: int = LIMIT,
) -> Evaluation:
    """Metrics of a representation that needs no network: see `baseline_latents`.

    >>> from disentwine import data
    >>> found = evaluate_baseline("ground-truth", data.Shapes2D(), ["modularity"], limit=2000)
    >>> round(found.scores[0].value, 2)
    1.0
    """
    split, indices = held_out(dataset, limit)
    latents = baseline_latents(name, dataset, indices, components=components)
    scored = score_latents(
        latents,
        dataset.factors[indices],
        dataset.spec,
        metrics=metrics,
        seeds=seeds,
        on_metric=on_metric,
    )
    return Evaluation(split, indices, scored.scores, latents, None, scored.skipped)


def _learner(name: str, components: int, seed: int) -> Any:
    from sklearn.decomposition import PCA, FastICA
    from sklearn.pipeline import make_pipeline
    from sklearn.random_projection import GaussianRandomProjection

    pca = PCA(components, svd_solver="randomized", random_state=seed)
    if name == "pca":
        return pca
    if name == "ica":
        # FastICA whitens by principal components anyway, but by all of them, which takes minutes.
        return make_pipeline(pca, FastICA(whiten="unit-variance", max_iter=2000, random_state=seed))
    return GaussianRandomProjection(components, random_state=seed)


def flat(images: UInt8Array) -> NDArray[np.float32]:
    """(n, pixels) on the scale from 0 to 1."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
