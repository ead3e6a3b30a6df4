"""What is measured of a CT-VAE: actions told and done, what else moves, and a network for telling alone."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import yaml
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Transitions
from disentwine.core.score import Score
from disentwine.data.transitions import seen_in_training, transitions
from disentwine.evaluation.actions import MOST_PAIRS, action_scores, leak_scores, walk_scores
from disentwine.evaluation.probes import (
    ACTION_PROBE_STEPS,
    CONCEPT_PROBE_STEPS,
    ConceptProbe,
    cached_probe,
    train_action_probe,
)
from disentwine.metrics.actions import retrieval_scores
from disentwine.metrics.disentanglement.info_mec import info_mec
from disentwine.metrics.images import reconstruction_error
from disentwine.runs.run import Run
from disentwine.studies.trial import Baseline

SIAMESE = "siamese network"
"""The baseline that learns nothing but to tell actions."""


def measure(
    measured: Run | Baseline,
    *,
    most: int = MOST_PAIRS,
    probe_steps: int = CONCEPT_PROBE_STEPS,
    action_probe_steps: int = ACTION_PROBE_STEPS,
) -> list[Score]:
    """Table 1, images after one action and after five, what else moves, and the codes' modularity; of
    the baseline, what it tells."""
    pairs, data = _pairs(measured), yaml.safe_dump(measured.recipe.data)
    if isinstance(measured, Baseline):
        unseen = _unseen(data, most)
        return action_probe_scores(
            pairs, unseen=unseen, steps=action_probe_steps, seed=measured.recipe.seed
        )
    model: Any = measured.model
    scores = action_scores(model, pairs, most=most, unseen=_unseen(data, most))
    scores += walk_scores(model, pairs)
    for leak in leak_scores(model, _concept_probe(data, probe_steps), pairs, most=most):
        scores += [leak, Score(f"{leak.name}-floor", cast(float, leak.noise_floor), leak.n)]
    test = np.random.default_rng(0).permutation(pairs.dataset.split["test"])[: 2 * most]
    images = pairs.dataset.images[test]
    scores.append(reconstruction_error(images, model.reconstruct(images)))
    return scores + _modularity(model, pairs, test)


def action_probe_scores(
    pairs: Transitions, *, unseen: NDArray[np.bool_], steps: int, seed: int
) -> list[Score]:
    """What a network that learns nothing else retrieves of the first test pairs, of which `unseen` tells
    whether training saw their pictures; how many updates it had is a detail."""
    network = train_action_probe(pairs, steps=steps, seed=seed)
    x, y, actions = pairs.batch(pairs.pairs["test"][: len(unseen)])
    found = retrieval_scores(
        network.retrieve(x, y),
        actions,
        names=pairs.actions,
        factors=pairs.factor_of_action.tolist(),
        unseen=unseen,
    )
    return [replace(score, details={**score.details, "updates": steps}) for score in found]


def _modularity(model: Any, pairs: Transitions, images: Any) -> list[Score]:
    """InfoMEC of the quantized codes (Disentanglement via Latent Quantization, K. Hsu et al., 2023)."""
    dataset = pairs.dataset
    found = info_mec(
        np.asarray(model.represent(dataset.images[images])),
        dataset.factors[images],
        discrete_codes=True,
        kinds=[factor.kind for factor in dataset.spec],
    )
    return [
        Score(name.replace("_", "-"), float(found.details[name]), found.n, noise_floor=floor)
        for name, floor in found.details["floors"].items()
    ]


TRANSITIONS: dict[str, Transitions] = {}
"""The pairs of the data set that this process measured last."""


def _pairs(measured: Run | Baseline) -> Transitions:
    data = yaml.safe_dump(measured.recipe.data)
    if data not in TRANSITIONS:
        TRANSITIONS.clear()
        TRANSITIONS[data] = transitions(measured.dataset)
    return TRANSITIONS[data]


@lru_cache(maxsize=1)
def _unseen(data: str, most: int) -> NDArray[np.bool_]:
    """Of the first test pairs, whether training saw neither picture, nor one that looks the same."""
    pairs = TRANSITIONS[data]
    images = pairs.pairs["test"][:most, :2]
    seen = seen_in_training(pairs.dataset, images.reshape(-1)).reshape(images.shape)
    return np.asarray(~seen.any(axis=1), dtype=bool)


def _concept_probe(data: str, steps: int) -> ConceptProbe:
    """The probe of a data set, whose error is measured on some test images."""

    def some_tested() -> Dataset:
        dataset = TRANSITIONS[data].dataset
        view = copy(dataset)
        view.images = dataset.images
        test = np.random.default_rng(0).permutation(dataset.split["test"])[:MOST_PAIRS]
        view.split = {**dataset.split, "test": test}
        return view

    return cached_probe(data, some_tested, steps=steps)
