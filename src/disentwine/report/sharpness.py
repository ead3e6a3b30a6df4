"""How sharp a model's images are, with and without interventions."""

from __future__ import annotations

from typing import Any

import numpy as np

from disentwine.contracts.capabilities import Intervenes
from disentwine.contracts.dataset import Dataset, IndexArray, Simulates
from disentwine.contracts.score import Score
from disentwine.metrics.sharpness import sharpness
from disentwine.report.counterfactuals import do_images


def sharpness_scores(
    model: Any, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """Of reconstructions beside their originals, and of do-images beside the simulator's.

    Images and interventions are those of `score_counterfactuals`, on all concepts together; nothing
    is answered for a model that does not intervene or a data set that cannot be redrawn.

    Arguments:
        model: one that *intervenes*.
        dataset: one that simulates.
        indices: which images to choose from.
        seed: of images and values.
    """
    if not isinstance(model, Intervenes) or not isinstance(dataset, Simulates):
        return []
    factual, done = do_images(model, dataset, indices, seed=seed)
    predicted = np.concatenate([images.predicted for images in done])
    truth = np.concatenate([images.truth for images in done])
    return [
        sharpness(model.reconstruct(factual), factual),
        sharpness(predicted, truth, name="sharpness-do"),
    ]
