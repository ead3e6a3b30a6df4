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
from disentwine.serve.loaded_run import EncodedImage, LoadedRun, MissingError
from disentwine.serve.schema import Action, ApplyAnswer, LikelyAction, RetrieveAnswer
from disentwine.serve.uploads import data_url

STEPS = {"+": 1, "-": -1}
_grids: WeakKeyDictionary[Dataset, FactorGrid | None] = WeakKeyDictionary()
REMEMBERED = 100
"""Pictures after actions that are kept of one image: an action is pressed again and again."""


def actions_of(run: LoadedRun) -> list[Action]:
    """Every action the model knows; none for models without."""
    model: Any = run.model  # a torch module has an `apply` of its own kind
    if not isinstance(model, AppliesActions):
        return []
    return [Action(id=name, label=action_label(name)) for name in model.actions]


def action_label(action: str) -> str:
    """An action in words.

    >>> action_label("+wall_hue")
    '+ wall hue'
    """
    return f"{action[:1]} {action[1:].replace('_', ' ')}"


def apply(run: LoadedRun, image: EncodedImage, actions: Sequence[str]) -> ApplyAnswer:
    """The picture after each of some actions, one upon the other; the true ones where known."""
    model = _acting_model(run)
    for action in actions:
        if action not in model.actions:
            nearest = did_you_mean(action[:80], model.actions)
            raise UsageError(f"there is no action '{action[:80]}'. {nearest}")
    images = []
    for done in range(1, len(actions) + 1):
        so_far = tuple(actions[:done])
        if so_far not in image.after_actions:
            if len(image.after_actions) >= REMEMBERED:
                image.after_actions.clear()
            image.after_actions[so_far] = data_url(model.apply(image.pixels, list(so_far)))
        images.append(image.after_actions[so_far])
    truths, valid_steps = _truths(run, image, actions)
    return ApplyAnswer(images=images, truths=truths, valid_steps=valid_steps)


def retrieve(run: LoadedRun, before: EncodedImage, after: EncodedImage) -> RetrieveAnswer:
    """Which action made one picture of another, the most probable first."""
    model = _acting_model(run)
    probabilities = np.asarray(model.retrieve(before.pixels, after.pixels), dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")
    return RetrieveAnswer(
        actions=[
            LikelyAction(
                id=model.actions[i],
                label=action_label(model.actions[i]),
                probability=number(probabilities[i]),
            )
            for i in order
        ]
    )


def _acting_model(run: LoadedRun) -> AppliesActions:
    model: Any = run.model
    if not isinstance(model, AppliesActions):
        raise MissingError("this model knows no actions")
    return model


def _truths(
    run: LoadedRun, image: EncodedImage, actions: Sequence[str]
) -> tuple[list[str | None] | None, int | None]:
    """What the data have for a held-out image after each action, None once a step leads nowhere; and how
    many lead on before that."""
    dataset = run.dataset
    if dataset is None or image.index is None:
        return None, None
    row: FloatArray | None = dataset.factors[image.index]
    truths: list[str | None] = []
    valid_steps = None
    for done, action in enumerate(actions):
        row = None if row is None else step(dataset, row, action)
        if row is None and valid_steps is None:
            valid_steps = done
        truth = None if row is None else _true_image(run, dataset, row)
        truths.append(None if truth is None else data_url(truth))
    return truths, valid_steps


def step(dataset: Dataset, row: FloatArray, action: str) -> FloatArray | None:
    """A row of the factor table after "+name" or "-name"; None beyond the end of a grid.

    >>> from disentwine.data import Shapes2D
    >>> shapes = Shapes2D()
    >>> step(shapes, shapes.factors[0], "-x") is None
    True
    """
    sign, name = action[:1], action[1:]
    grid = factor_grid(dataset)
    if grid is None or sign not in STEPS or name not in dataset.names:
        return None
    return grid.step(row, dataset.names.index(name), STEPS[sign])


def factor_grid(dataset: Dataset) -> FactorGrid | None:
    """The steps of a data set, found once for all runs on it; None where its factors have none."""
    if dataset not in _grids:
        try:
            _grids[dataset] = FactorGrid(dataset)
        except UsageError:
            _grids[dataset] = None
    return _grids[dataset]


def _true_image(run: LoadedRun, dataset: Dataset, row: FloatArray) -> UInt8Array | None:
    """The image of these factors, drawn or looked up."""
    if run.simulator is not None:
        rendered: UInt8Array = run.simulator.simulate(row[None]).images[0]
        return rendered
    grid = factor_grid(dataset)
    if grid is None:
        return None
    # Those alike in the factors that act may differ in others, and the truth must not.
    matches = grid.matching(row)
    same = matches[(dataset.factors[matches] == row).all(axis=1)]
    return dataset.images[int(same[0])] if len(same) == 1 else None
