"""Scores of CT-VAE and of the supervised action classifier."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Transitions
from disentwine.core.score import Score
from disentwine.data.transitions import transitions
from disentwine.evaluation.actions import (
    MOST_PAIRS,
    action_scores,
    off_target_scores,
    rollout_scores,
)
from disentwine.evaluation.probes import (
    ACTION_PROBE_STEPS,
    CONCEPT_PROBE_STEPS,
    ConceptProbe,
    cached_probe,
    train_action_probe,
)
from disentwine.evaluation.protocols import information_scores, unseen, with_chance_levels
from disentwine.metrics.actions import retrieval_scores
from disentwine.metrics.images import reconstruction_error
from disentwine.runs.run import Run
from disentwine.studies.trial import Baseline

SIAMESE = "siamese network"
"""The supervised action classifier (baseline)."""


def measure(
    measured: Run | Baseline,
    *,
    most: int = MOST_PAIRS,
    probe_steps: int = CONCEPT_PROBE_STEPS,
    action_probe_steps: int = ACTION_PROBE_STEPS,
) -> list[Score]:
    """Retrieval (Table 1), images after one action and five, off-target change and modularity of the
    codes; of the baseline, retrieval."""
    pairs, data = _pairs(measured), yaml.safe_dump(measured.recipe.data)
    if isinstance(measured, Baseline):
        return action_probe_scores(
            pairs,
            unseen=_unseen(data, most),
            steps=action_probe_steps,
            seed=measured.recipe.seed,
        )
    model: Any = measured.model
    scores = action_scores(model, pairs, most=most, unseen=_unseen(data, most))
    scores += rollout_scores(model, pairs)
    probe, dataset = _concept_probe(data, probe_steps), pairs.dataset
    scores += with_chance_levels(off_target_scores(model, probe, pairs, most=most))
    test = np.random.default_rng(0).permutation(dataset.split["test"])[: 2 * most]
    images = dataset.images[test]
    scores.append(reconstruction_error(images, model.reconstruct(images)))
    codes = model.represent(images)
    return scores + information_scores(codes, dataset.factors[test], dataset.spec)


def action_probe_scores(
    pairs: Transitions, *, unseen: NDArray[np.bool_], steps: int, seed: int
) -> list[Score]:
    """Retrieval scores of the supervised action classifier on the first test pairs.

    Arguments:
        pairs: of the data set.
        unseen: for these test pairs, see `retrieval_scores`.
        steps: updates of the classifier, also among the details.
        seed: of its training.
    """
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


TRANSITIONS: dict[str, Transitions] = {}
"""Cache of one data set's pairs, the last that this process measured."""


def _pairs(measured: Run | Baseline) -> Transitions:
    data = yaml.safe_dump(measured.recipe.data)
    if data not in TRANSITIONS:
        TRANSITIONS.clear()
        TRANSITIONS[data] = transitions(measured.dataset)
    return TRANSITIONS[data]


@lru_cache(maxsize=1)
def _unseen(data: str, most: int) -> NDArray[np.bool_]:
    """`unseen` of the cached pairs."""
    return unseen(TRANSITIONS[data], most=most)


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
