"""A model's actions measured on pairs of images that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from disentwine.contracts.dataset import Dataset, IndexArray, UInt8Array
from disentwine.contracts.model import Transits
from disentwine.contracts.score import Score
from disentwine.contracts.transitions import Transitions
from disentwine.data.transitions import transitions
from disentwine.errors import DataError, UsageError
from disentwine.metrics.actions import intervention_scores, retrieval_scores, squared_error
from disentwine.report.reader import Reader
from disentwine.report.stepping import Steps

MOST_PAIRS = 2000
WALK = 5
WALKS = 40
"""Images a factor that take five steps."""
READABLE = 0.5
"""The largest error, in deviations of the label, of a reader who can tell whether a factor moved."""


def action_scores(model: Any, pairs: Transitions, *, most: int = MOST_PAIRS) -> list[Score]:
    """Accuracy of retrieved actions and factors, and errors of images after an action.

    Nothing is answered for a model without actions, or one of other actions than the pairs'.

    Arguments:
        model: one that *transitions*.
        pairs: its test pairs are used; the validation pairs where there are none.
        most: pairs to look at.
    """
    if not isinstance(model, Transits) or model.actions != pairs.actions:
        return []
    table = _held_out(pairs)[:most]
    x, y, actions = pairs.batch(table)
    retrieval = retrieval_scores(
        model.retrieve(x, y), actions, names=pairs.actions, factors=pairs.factor_of_action.tolist()
    )
    made = apply_each(model, x, actions)
    images = intervention_scores(
        predicted=made, truth=y, before=x, reconstructed=model.reconstruct(y)
    )
    return [*retrieval, *images]


def apply_each(model: Transits, x: UInt8Array, actions: IndexArray) -> UInt8Array:
    """Each image after an action of its own."""
    made = np.empty_like(x)
    for action in np.unique(actions):
        made[actions == action] = model.apply(x[actions == action], int(action))
    return made


def walk_scores(model: Any, pairs: Transitions, *, seed: int = 0) -> list[Score]:
    """What is left of an image after five actions, one on what the other made.

    Each factor is moved on and on, and back from the end of its grid; the real image at the end
    is what the fifth is compared to, that after one action what the first is.

    Arguments:
        model: one that *transitions*.
        pairs: where test images, and actions, come from.
        seed: of the choice of images.
    """
    if not isinstance(model, Transits) or model.actions != pairs.actions:
        return []
    dataset = pairs.dataset
    steps = Steps(dataset, [int(f) for f in np.unique(pairs.factor_of_action)])
    rng = np.random.default_rng(seed)
    errors: list[tuple[float, float, int]] = []
    for factor in steps.columns:
        images = rng.permutation(dataset.split["test"])[:WALKS]
        for image, path, ends in walks(steps, pairs, images, factor):
            first = model.apply(image_of(dataset, image), path[0])
            last = model.apply(image_of(dataset, image), path)
            one = squared_error(first, image_of(dataset, ends[0]))
            five = squared_error(last, image_of(dataset, ends[-1]))
            errors.append((one, five, factor))
    if not errors:
        return []
    one, five = (float(np.mean([error[i] for error in errors])) for i in (0, 1))
    about = f"squared error of a pixel after {WALK} actions over that after one"
    tiny = float(np.finfo(float).tiny)
    details = {"about": about, "after one": one, f"after {WALK}": five}
    return [Score("repeated-ratio", five / max(one, tiny), len(errors), details=details)]


def walks(
    steps: Steps, pairs: Transitions, images: IndexArray, factor: int
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
            there = int(steps.moved(np.array([here]), factor, direction)[0])
            if there < 0:
                direction = -direction
                there = int(steps.moved(np.array([here]), factor, direction)[0])
            if there < 0:
                break
            path.append(up if direction > 0 else down)
            ends.append(there)
            here = there
        if len(path) == WALK:
            found.append((int(start), path, ends))
    return found


def image_of(dataset: Dataset, index: int) -> UInt8Array:
    """One image as a stack of one."""
    return dataset.images[np.array([index])]


def leak_scores(
    model: Any, reader: Reader, pairs: Transitions, *, most: int = MOST_PAIRS
) -> list[Score]:
    """How far factors that were not acted on are moved, read back from the model's images.

    The noise floor is what the reader sees move between real images and their reconstructions. What
    the reader cannot read from real images is left out: of it a blind one would see nothing move.

    Arguments:
        model: one that *transitions*.
        reader: of the same data set, from `train_reader`.
        pairs: its test pairs are used.
        most: pairs to look at.
    """
    if not isinstance(model, Transits) or model.actions != pairs.actions:
        return []
    x, y, actions = pairs.batch(_held_out(pairs)[:most])
    real = reader(y)
    readable = np.asarray(reader.error) <= READABLE
    own = np.zeros((len(actions), len(reader.names)), dtype=bool)
    own[np.arange(len(actions)), pairs.factor_of_action[actions]] = True
    held, acted = ~own & readable, own & readable
    moved = np.abs(reader(apply_each(model, x, actions)) - real) / reader.scale
    alone = np.abs(reader(model.reconstruct(y)) - real) / reader.scale
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
    """`action_scores` on a data set's own pairs; nothing for a model or a data set without any."""
    if not isinstance(model, Transits):
        return []
    try:
        pairs = transitions(dataset)
    except (DataError, UsageError):
        return []
    return action_scores(model, pairs, most=most) if len(_held_out(pairs)) else []
