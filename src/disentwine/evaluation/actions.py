"""A model's actions measured on pairs of images that it has not seen."""

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
WALK = 5
WALKS = 40
"""Images a factor that take five steps."""
READABLE = 0.5
"""The largest error, in deviations of the label, of a reader who can tell whether a factor moved."""


def action_scores(
    model: Any,
    pairs: Transitions,
    *,
    most: int = MOST_PAIRS,
    unseen: NDArray[np.bool_] | None = None,
) -> list[Score]:
    """Accuracy of retrieved actions and factors, and errors of images after an action.

    Nothing is answered for a model without actions, or one of other actions than the pairs'.

    Arguments:
        model: one that *transitions*.
        pairs: its test pairs are used; the validation pairs where there are none.
        most: pairs to look at.
        unseen: of these pairs, see `retrieval_scores`.
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
    made = apply_each(model, x, actions)
    images = intervention_scores(
        predicted=made, truth=y, before=x, reconstructed=model.reconstruct(y)
    )
    return [*retrieval, *images]


def apply_each(model: AppliesActions, x: UInt8Array, actions: IndexArray) -> UInt8Array:
    """Each image after an action of its own."""
    made = np.empty_like(x)
    for action in np.unique(actions):
        made[actions == action] = model.apply(x[actions == action], int(action))
    return made


class Walked(NamedTuple):
    """Images after one action and after five, as a model makes them and as they are.

    Arguments:
        factor: (n,) which was moved.
        made: what the model makes, (n, h, w, c) after the first and after the last.
        real: the images that the actions lead to.
    """

    factor: IndexArray
    made: tuple[UInt8Array, UInt8Array]
    real: tuple[UInt8Array, UInt8Array]


def walk(model: AppliesActions, pairs: Transitions, *, seed: int = 0) -> Walked | None:
    """Move each factor of some test images on and on, and back from the end of its grid.

    Nothing is answered where no factor has room for it.

    Arguments:
        model: one that *transitions*.
        pairs: where test images, and actions, come from.
        seed: of the choice of images.
    """
    dataset = pairs.dataset
    steps = FactorGrid(dataset)
    rng = np.random.default_rng(seed)
    found = [
        (factor, *taken)
        for factor in steps.columns
        for taken in walks(steps, pairs, rng.permutation(dataset.split["test"])[:WALKS], factor)
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
    return Walked(factor, (first, last), (dataset.images[ends[:, 0]], dataset.images[ends[:, -1]]))


def walk_scores(model: Any, pairs: Transitions, *, seed: int = 0) -> list[Score]:
    """What is left of an image after five actions, one on what the other made.

    The real image at the end is what the fifth is compared to, that after one action what the first
    is.

    Arguments:
        model: one that *transitions*.
        pairs: where test images, and actions, come from.
        seed: of the choice of images.
    """
    if not isinstance(model, AppliesActions) or model.actions != pairs.actions:
        return []
    walked = walk(model, pairs, seed=seed)
    if walked is None:
        return []
    one, five = (squared_error(*both) for both in zip(walked.made, walked.real, strict=True))
    about = f"squared error of a pixel after {WALK} actions over that after one"
    details = {"about": about, "after one": one, f"after {WALK}": five}
    return [Score("repeated-ratio", over(five, one), len(walked.factor), details=details)]


def walks(
    steps: FactorGrid, pairs: Transitions, images: IndexArray, factor: int
) -> list[tuple[int, list[int], list[int]]]:
    """(image, five actions, where each leads) for images from which a factor can be moved."""
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
        while len(path) < WALK:
            there = int(steps.neighbours(np.array([here]), factor, direction)[0])
            if there < 0:
                direction = -direction
                there = int(steps.neighbours(np.array([here]), factor, direction)[0])
            if there < 0:
                break
            path.append(up if direction > 0 else down)
            ends.append(there)
            here = there
        if len(path) == WALK:
            found.append((int(start), path, ends))
    return found


def leak_scores(
    model: Any, reader: ConceptProbe, pairs: Transitions, *, most: int = MOST_PAIRS
) -> list[Score]:
    """How far factors that were not acted on are moved by one action and by five, read back from the
    model's images.

    The noise floor is what the reader sees move between real images and their reconstructions. What
    the reader cannot read from real images is left out: of it a blind one would see nothing move.

    Arguments:
        model: one that *transitions*.
        reader: of the same data set, from `train_probe`.
        pairs: its test pairs are used.
        most: pairs to look at.
    """
    if not isinstance(model, AppliesActions) or model.actions != pairs.actions:
        return []
    x, y, actions = pairs.batch(_held_out(pairs)[:most])
    made = apply_each(model, x, actions)
    found = _leaks(model, reader, made, y, pairs.factor_of_action[actions])
    walked = walk(model, pairs)
    if walked is not None:
        after = _leaks(model, reader, walked.made[1], walked.real[1], walked.factor)
        found += [replace(score, name=f"{score.name}-after-{WALK}") for score in after]
    return found


def _leaks(
    model: Any, reader: ConceptProbe, made: UInt8Array, real: UInt8Array, factor: IndexArray
) -> list[Score]:
    """How far the factors of images are from those of the real ones: the one acted on, and others."""
    truth = reader(real)
    readable = np.asarray(reader.error) <= READABLE
    own = np.zeros((len(factor), len(reader.names)), dtype=bool)
    own[np.arange(len(factor)), factor] = True
    held, acted = ~own & readable, own & readable
    moved = np.abs(reader(made) - truth) / reader.scale
    alone = np.abs(reader(model.reconstruct(real)) - truth) / reader.scale
    errors = dict(zip(reader.names, np.round(reader.error, 3).tolist(), strict=True))
    return [
        Score(
            name,
            float(moved[where].mean()),
            int(where.any(axis=1).sum()),
            noise_floor=float(alone[where].mean()),
            details={"about": f"{about}, in deviations of the label", "reader's error": errors},
        )
        for name, where, about in (
            ("action-leak", held, "mean movement of factors not acted on"),
            ("action-error", acted, "mean error of the factor acted on"),
        )
        if where.any()
    ]


def _held_out(pairs: Transitions) -> IndexArray:
    return pairs.pairs["test"] if len(pairs.pairs["test"]) else pairs.pairs["validation"]


def score_actions(model: Any, dataset: Dataset, *, most: int = MOST_PAIRS // 4) -> list[Score]:
    """`action_scores` and `walk_scores` on a data set's own pairs; nothing for a model or a data set without
    any."""
    if not isinstance(model, AppliesActions):
        return []
    try:
        pairs = transitions(dataset)
    except (DataError, UsageError):
        return []
    if not len(_held_out(pairs)):
        return []
    return action_scores(model, pairs, most=most) + walk_scores(model, pairs)
