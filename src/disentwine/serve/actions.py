"""Actions on images: what becomes of one, and which action it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from disentwine.core.capabilities import AppliesActions
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.factor_grid import FactorGrid
from disentwine.errors import UsageError, did_you_mean
from disentwine.serve.controls import number
from disentwine.serve.loaded_run import MissingError, Opened, Seen
from disentwine.serve.schema import Action, ApplyAnswer, LikelyAction, RetrieveAnswer
from disentwine.serve.uploads import data_url

STEPS = {"+": 1, "-": -1}
_steps: WeakKeyDictionary[Dataset, FactorGrid | None] = WeakKeyDictionary()
REMEMBERED = 100
"""Pictures after actions that are kept of one image: an action is pressed again and again."""


def actions_of(opened: Opened) -> list[Action]:
    """Every action the model knows; none for models without."""
    model: Any = opened.model  # a torch module has an `apply` of its own kind
    if not isinstance(model, AppliesActions):
        return []
    return [Action(id=name, label=label(name)) for name in model.actions]


def label(action: str) -> str:
    """An action in words.

    >>> label("+wall_hue")
    '+ wall hue'
    """
    return f"{action[:1]} {action[1:].replace('_', ' ')}"


def apply(opened: Opened, seen: Seen, actions: Sequence[str]) -> ApplyAnswer:
    """The picture after each of some actions, one upon the other; the true ones where known."""
    model = _transiting(opened)
    for action in actions:
        if action not in model.actions:
            nearest = did_you_mean(action[:80], model.actions)
            raise UsageError(f"there is no action '{action[:80]}'. {nearest}")
    pictures = []
    for done in range(1, len(actions) + 1):
        so_far = tuple(actions[:done])
        if so_far not in seen.after_actions:
            if len(seen.after_actions) >= REMEMBERED:
                seen.after_actions.clear()
            seen.after_actions[so_far] = data_url(model.apply(seen.picture, list(so_far)))
        pictures.append(seen.after_actions[so_far])
    truths, beyond = _truths(opened, seen, actions)
    return ApplyAnswer(pictures=pictures, truths=truths, beyond=beyond)


def retrieve(opened: Opened, before: Seen, after: Seen) -> RetrieveAnswer:
    """Which action made one picture of another, the most probable first."""
    model = _transiting(opened)
    probabilities = np.asarray(model.retrieve(before.picture, after.picture), dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")
    return RetrieveAnswer(
        actions=[
            LikelyAction(
                id=model.actions[i],
                label=label(model.actions[i]),
                probability=number(probabilities[i]),
            )
            for i in order
        ]
    )


def _transiting(opened: Opened) -> AppliesActions:
    model: Any = opened.model
    if not isinstance(model, AppliesActions):
        raise MissingError("this model knows no actions")
    return model


def _truths(
    opened: Opened, seen: Seen, actions: Sequence[str]
) -> tuple[list[str | None] | None, int | None]:
    """What the data have for a held-out image after each action, None once a step leads nowhere; and how
    many lead on before that."""
    dataset = opened.dataset
    if dataset is None or seen.index is None:
        return None, None
    row: FloatArray | None = dataset.factors[seen.index]
    truths: list[str | None] = []
    beyond = None
    for done, action in enumerate(actions):
        row = None if row is None else step(dataset, row, action)
        if row is None and beyond is None:
            beyond = done
        picture = None if row is None else _picture(opened, dataset, row)
        truths.append(None if picture is None else data_url(picture))
    return truths, beyond


def step(dataset: Dataset, row: FloatArray, action: str) -> FloatArray | None:
    """A row of the factor table after "+name" or "-name"; None beyond the end of a grid.

    >>> from disentwine.data import Shapes2D
    >>> shapes = Shapes2D()
    >>> step(shapes, shapes.factors[0], "-x") is None
    True
    """
    sign, name = action[:1], action[1:]
    steps = steps_of(dataset)
    if steps is None or sign not in STEPS or name not in dataset.names:
        return None
    return steps.step(row, dataset.names.index(name), STEPS[sign])


def steps_of(dataset: Dataset) -> FactorGrid | None:
    """The steps of a data set, found once for all runs on it; None where its factors have none."""
    if dataset not in _steps:
        try:
            _steps[dataset] = FactorGrid(dataset)
        except UsageError:
            _steps[dataset] = None
    return _steps[dataset]


def _picture(opened: Opened, dataset: Dataset, row: FloatArray) -> UInt8Array | None:
    """The image of these factors, drawn or looked up."""
    if opened.simulator is not None:
        picture: UInt8Array = opened.simulator.simulate(row[None]).images[0]
        return picture
    steps = steps_of(dataset)
    if steps is None:
        return None
    # Those alike in the factors that act may differ in others, and the truth must not.
    alike = steps.matching(row)
    same = alike[(dataset.factors[alike] == row).all(axis=1)]
    return dataset.images[int(same[0])] if len(same) == 1 else None
