"""Errors of counterfactual images against a simulator, and their sharpness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from disentwine.core.capabilities import Intervenes
from disentwine.core.dataset import Dataset, Factor, Simulates
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.data.simulation import rerender
from disentwine.metrics.images import counterfactual_scores, sharpness

MOST_IMAGES = 500


class RandomInterventions(NamedTuple):
    """Images to intervene on, and the values that each concept is set to.

    Arguments:
        indices: (n,) of the images.
        values: (n,) for each concept, its value in each of them.
    """

    indices: IndexArray
    values: dict[str, FloatArray]


def draw_interventions(
    concepts: Sequence[str], dataset: Dataset, indices: IndexArray, *, seed: int
) -> RandomInterventions:
    """Random interventions on one concept at a time, the same for every model.

    Arguments:
        concepts: that are set.
        dataset: whose labels decide the values.
        indices: images to choose from; at most `MOST_IMAGES` are used.
        seed: of the choice and of the values.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(indices)[:MOST_IMAGES]
    spec = {factor.name: factor for factor in dataset.spec}
    values = {
        name: drawn_values(spec[name], dataset.column(name), len(chosen), rng) for name in concepts
    }
    return RandomInterventions(chosen, values)


def drawn_values(
    factor: Factor, column: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Values: half are labels of other images, half are uniform between the 2nd and 98th
    percentile. Values of factors that are not continuous are all labels.

    >>> colour = Factor("colour", kind="categorical", values=("red", "blue"))
    >>> drawn_values(colour, np.ones(5), 3, np.random.default_rng(0))
    array([1., 1., 1.])
    """
    known = column[np.isfinite(column)]
    least, most = np.quantile(known, [0.02, 0.98])
    values = rng.uniform(least, most, n)
    on_grid = np.arange(n) % 2 == 0
    if factor.kind != "continuous":
        on_grid[:] = True
    values[on_grid] = rng.choice(known, on_grid.sum())
    return values


@dataclass(frozen=True)
class Counterfactuals:
    """Counterfactual images under an intervention on one concept.

    Arguments:
        concept: the one that is set.
        predicted: (n, height, width, channels) the model's images.
        truth: the simulator's, of the same shape.
    """

    concept: str
    predicted: UInt8Array
    truth: UInt8Array


def counterfactual_images(
    model: Intervenes, dataset: Dataset, indices: IndexArray, *, seed: int
) -> tuple[UInt8Array, list[Counterfactuals]]:
    """The images of `draw_interventions`, and their counterfactuals under each concept's intervention.

    Arguments: as for `score_counterfactuals`.
    """
    indices, interventions = draw_interventions(model.concept_names, dataset, indices, seed=seed)
    factual = dataset.images[indices]
    return factual, [
        Counterfactuals(
            name,
            predicted=model.do(factual, {name: values}),
            truth=rerender(dataset, indices, {name: values}).images,
        )
        for name, values in interventions.items()
    ]


def score_counterfactuals(
    model: Any, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """Counterfactual error of every concept relative to reconstruction ("ratio") and to no intervention
    ("share").

    Empty for a model that does not intervene or a data set that cannot simulate.

    Arguments:
        model: one that *intervenes*.
        dataset: one that simulates.
        indices: images to intervene on, at most `MOST_IMAGES` of them.
        seed: of the values.
    """
    if not isinstance(model, Intervenes) or not isinstance(dataset, Simulates):
        return []
    factual, done = counterfactual_images(model, dataset, indices, seed=seed)
    reconstructed = model.reconstruct(factual)
    scores = [
        score
        for images in done
        for score in counterfactual_scores(
            images.concept,
            predicted=images.predicted,
            truth=images.truth,
            factual=factual,
            reconstructed=reconstructed,
        )
    ]
    about = {
        "ratio": "error of counterfactuals against the simulator, over that of reconstructions",
        "share": "the same error over that of the unchanged image",
    }
    return [
        replace(s, details={**s.details, "about": about[s.name.split(":")[0].split("-")[1]]})
        for s in scores
    ]


def sharpness_scores(
    model: Any, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """Sharpness of reconstructions relative to originals, and of counterfactual images relative to the
    simulator's.

    Images and interventions are those of `score_counterfactuals`, over all concepts; empty for a model
    that does not intervene or a data set that cannot simulate.

    Arguments:
        model: one that *intervenes*.
        dataset: one that simulates.
        indices: images to choose from.
        seed: of images and values.
    """
    if not isinstance(model, Intervenes) or not isinstance(dataset, Simulates):
        return []
    factual, done = counterfactual_images(model, dataset, indices, seed=seed)
    predicted = np.concatenate([images.predicted for images in done])
    truth = np.concatenate([images.truth for images in done])
    return [
        sharpness(model.reconstruct(factual), factual),
        sharpness(predicted, truth, name="sharpness-do"),
    ]
