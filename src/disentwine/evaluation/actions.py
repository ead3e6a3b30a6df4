"""Evaluation of actions on test pairs: retrieval, image errors, rollouts, off-target change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from disentwine.core.capabilities import AppliesActions
from disentwine.core.dataset import Dataset, Transitions
from disentwine.core.score import Score
from disentwine.core.types import IndexArray, UInt8Array
from disentwine.data.factor_grid import FactorGrid
from disentwine.data.transitions import transitions
from disentwine.errors import DataError, UsageError
from disentwine.evaluation.probes import ConceptProbe
from disentwine.metrics.actions import intervention_scores, retrieval_scores
from disentwine.metrics.images import over, squared_error

MOST_PAIRS = 2000
ROLLOUT_LENGTH = 5
"""Actions of a rollout."""
ROLLOUTS_PER_FACTOR = 40
"""Test images per factor from which rollouts start."""
READABLE = 0.5
"""The largest error of a probe, in label standard deviations, that still shows changes of a factor."""


def action_scores(
    model: Any,
    pairs: Transitions,
    *,
    most: int = MOST_PAIRS,
    unseen: NDArray[np.bool_] | None = None,
) -> list[Score]:
    """Accuracy of retrieved actions and factors, and errors of images after an action.

    The result is empty for a model without actions or with other actions than the pairs.

    Arguments:
        model: a model that *transitions*.
        pairs: its test pairs are used, or the validation pairs if there are none.
        most: largest number of pairs.
        unseen: for these pairs, see `retrieval_scores`.
    """
    if not isinstance(model, AppliesActions) or model.actions != pairs.actions:
        return []
    table = _held_out(pairs)[:most]
    x, y, actions = pairs.batch(table)
    retrieval = retrieval_scores(
        model.retrieve(x, y),
        actions,
        names=pairs.actions,
        factors=pairs.factor_of_action.tolist(),
        unseen=unseen,
    )
    predicted = apply_each(model, x, actions)
    images = intervention_scores(
        predicted=predicted, truth=y, before=x, reconstructed=model.reconstruct(y)
    )
    return [*retrieval, *images]


def apply_each(model: AppliesActions, x: UInt8Array, actions: IndexArray) -> UInt8Array:
    """Each image after its own action."""
    predicted = np.empty_like(x)
    for action in np.unique(actions):
        predicted[actions == action] = model.apply(x[actions == action], int(action))
    return predicted


class RolloutImages(NamedTuple):
    """Predicted and real images after the first and the last action of rollouts.

    Arguments:
        factor: (n,) index of the factor that changes.
        predicted: the model's images, (n, h, w, c) after the first action and after the last.
        real: the same images of the data set.
    """

    factor: IndexArray
    predicted: tuple[UInt8Array, UInt8Array]
    real: tuple[UInt8Array, UInt8Array]


def rollout_images(
    model: AppliesActions, pairs: Transitions, *, seed: int = 0
) -> RolloutImages | None:
    """Roll out each factor from some test images, with the direction reversed at the ends of its grid.

    The result is None if no factor has enough values.

    Arguments:
        model: a model that *transitions*.
        pairs: source of the test images and the actions.
        seed: of the choice of images.
    """
    dataset = pairs.dataset
    steps = FactorGrid(dataset)
    rng = np.random.default_rng(seed)
    found = [
        (factor, *taken)
        for factor in steps.columns
        for taken in rollouts(
            steps, pairs, rng.permutation(dataset.split["test"])[:ROLLOUTS_PER_FACTOR], factor
        )
    ]
    if not found:
        return None
    factor, starts, paths, ends = (np.array(column) for column in zip(*found, strict=True))
    images = dataset.images[starts]
    last = np.empty_like(images)
    for path in np.unique(paths, axis=0):
        same = (paths == path).all(axis=1)
        last[same] = model.apply(images[same], path.tolist())
    first = apply_each(model, images, paths[:, 0])
    real = dataset.images[ends[:, 0]], dataset.images[ends[:, -1]]
    return RolloutImages(factor, (first, last), real)


def rollout_scores(model: Any, pairs: Transitions, *, seed: int = 0) -> list[Score]:
    """Image error after five actions relative to the error after one.

    Each predicted image is compared with the real image after as many actions.

    Arguments:
        model: a model that *transitions*.
        pairs: source of the test images and the actions.
        seed: of the choice of images.
    """
    if not isinstance(model, AppliesActions) or model.actions != pairs.actions:
        return []
    found = rollout_images(model, pairs, seed=seed)
    if found is None:
        return []
    one, five = (squared_error(*both) for both in zip(found.predicted, found.real, strict=True))
    about = f"squared pixel error after {ROLLOUT_LENGTH} actions over the error after one"
    details = {"about": about, "after one": one, f"after {ROLLOUT_LENGTH}": five}
    return [Score("rollout-ratio", over(five, one), len(found.factor), details=details)]


def rollouts(
    steps: FactorGrid, pairs: Transitions, images: IndexArray, factor: int
) -> list[tuple[int, list[int], list[int]]]:
    """(image, five actions, image after each) for images where a factor has neighbouring values."""
    up, down = (
        int(
            np.flatnonzero((pairs.factor_of_action == factor) & (pairs.direction_of_action == d))[0]
        )
        for d in (1, -1)
    )
    found = []
    for start in images:
        here, direction = int(start), 1
        path: list[int] = []
        ends: list[int] = []
        while len(path) < ROLLOUT_LENGTH:
            there = int(steps.neighbours(np.array([here]), factor, direction)[0])
            if there < 0:
                direction = -direction
                there = int(steps.neighbours(np.array([here]), factor, direction)[0])
            if there < 0:
                break
            path.append(up if direction > 0 else down)
            ends.append(there)
            here = there
        if len(path) == ROLLOUT_LENGTH:
            found.append((int(start), path, ends))
    return found


def off_target_scores(
    model: Any, probe: ConceptProbe, pairs: Transitions, *, most: int = MOST_PAIRS
) -> list[Score]:
    """Off-target change: how much one action and five change the other factors, as predicted from the
    model's images by a concept probe.

    The chance level is the change that the probe predicts between real images and their
    reconstructions. Factors that the probe does not predict from real images are left out, because
    it would show no change of them.

    Arguments:
        model: a model that *transitions*.
        probe: the concept probe of the same data set, from `train_probe`.
        pairs: its test pairs are used.
        most: largest number of pairs.
    """
    if not isinstance(model, AppliesActions) or model.actions != pairs.actions:
        return []
    x, y, actions = pairs.batch(_held_out(pairs)[:most])
    predicted = apply_each(model, x, actions)
    scores = _off_target(model, probe, predicted, y, pairs.factor_of_action[actions])
    found = rollout_images(model, pairs)
    if found is not None:
        after = _off_target(model, probe, found.predicted[1], found.real[1], found.factor)
        scores += [replace(score, name=f"{score.name}-after-{ROLLOUT_LENGTH}") for score in after]
    return scores


def _off_target(
    model: Any, probe: ConceptProbe, predicted: UInt8Array, real: UInt8Array, factor: IndexArray
) -> list[Score]:
    """Errors of the factors of predicted images: of the other factors, and of the action's own."""
    truth = probe(real)
    readable = np.asarray(probe.error) <= READABLE
    own = np.zeros((len(factor), len(probe.names)), dtype=bool)
    own[np.arange(len(factor)), factor] = True
    others, own = ~own & readable, own & readable
    change = np.abs(probe(predicted) - truth) / probe.scale
    floor = np.abs(probe(model.reconstruct(real)) - truth) / probe.scale
    errors = dict(zip(probe.names, np.round(probe.error, 3).tolist(), strict=True))
    return [
        Score(
            name,
            float(change[where].mean()),
            int(where.any(axis=1).sum()),
            noise_floor=float(floor[where].mean()),
            details={"about": f"{about}, in label standard deviations", "probe error": errors},
        )
        for name, where, about in (
            ("off-target-change", others, "mean change of the factors without action"),
            ("action-error", own, "mean error of the factor acted on"),
        )
        if where.any()
    ]


def _held_out(pairs: Transitions) -> IndexArray:
    return pairs.pairs["test"] if len(pairs.pairs["test"]) else pairs.pairs["validation"]


def score_actions(model: Any, dataset: Dataset, *, most: int = MOST_PAIRS // 4) -> list[Score]:
    """`action_scores` and `rollout_scores` on a data set's own pairs; empty for a model without actions
    or a data set without pairs."""
    if not isinstance(model, AppliesActions):
        return []
    try:
        pairs = transitions(dataset)
    except (DataError, UsageError):
        return []
    if not len(_held_out(pairs)):
        return []
    return action_scores(model, pairs, most=most) + rollout_scores(model, pairs)
