"""A model's do-images measured against the simulator's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from disentwine.contracts.dataset import Dataset, IndexArray, Simulates
from disentwine.contracts.model import Intervenes
from disentwine.contracts.score import Score
from disentwine.metrics.counterfactual import counterfactual_scores

MOST_IMAGES = 500


def score_counterfactuals(
    model: Any, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """Ratio and share for every concept, half of the values on the data's grid and half off it.

    Values on the grid are those of other images of the data set; values off it are drawn evenly
    between the 2nd and 98th percentile. Nothing is answered for a model that does not intervene or a
    data set that cannot be redrawn.

    Arguments:
        model: one that *intervenes*.
        dataset: one that simulates.
        indices: which images to intervene on, at most `MOST_IMAGES` of them.
        seed: of the values.
    """
    if not isinstance(model, Intervenes) or not isinstance(dataset, Simulates):
        return []
    rng = np.random.default_rng(seed)
    indices = rng.permutation(indices)[:MOST_IMAGES]
    factual, factors = dataset.images[indices], dataset.factors[indices]
    noise = getattr(dataset, "noise", None)
    own_noise = None if noise is None else noise[indices]
    reconstructed = model.reconstruct(factual)
    scores: list[Score] = []
    for name, column in zip(model.concept_names, dataset.factors.T, strict=True):
        least, most = np.quantile(column, [0.02, 0.98])
        values = rng.uniform(least, most, len(indices))
        on_grid = np.arange(len(indices)) % 2 == 0
        values[on_grid] = rng.choice(column, on_grid.sum())
        truth = dataset.simulate(factors, {name: values}, noise=own_noise).images
        scores += counterfactual_scores(
            name,
            predicted=model.do(factual, {name: values}),
            truth=truth,
            factual=factual,
            reconstructed=reconstructed,
        )
    about = {
        "ratio": "error of do-images against the simulator, over that of reconstructions",
        "share": "the same error over that of the unchanged image",
    }
    return [
        replace(s, details={**s.details, "about": about[s.name.split(":")[0].split("-")[1]]})
        for s in scores
    ]
