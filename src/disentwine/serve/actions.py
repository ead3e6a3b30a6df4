"""Answers to requests that apply or infer actions."""

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
from disentwine.serve.images import data_url
from disentwine.serve.loaded_run import EncodedImage, LoadedRun, MissingError
from disentwine.serve.schema import Action, ApplyAnswer, LikelyAction, RetrieveAnswer

_grids: WeakKeyDictionary[Dataset, FactorGrid | None] = WeakKeyDictionary()
CACHED = 100
"""Most images after actions that are cached for one start image."""


def actions_of(run: LoadedRun) -> list[Action]:
    """The actions of a model; empty for models without."""
    model: Any = run.model  # torch modules have another method `apply`
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
    """The image after each of some actions, and the true images where they are known."""
    model = _model_with_actions(run)
    for action in actions:
        if action not in model.actions:
            nearest = did_you_mean(action[:80], model.actions)
            raise UsageError(f"there is no action '{action[:80]}'. {nearest}")
    images = []
    for done in range(1, len(actions) + 1):
        so_far = tuple(actions[:done])
        if so_far not in image.after_actions:
            if len(image.after_actions) >= CACHED:
                image.after_actions.clear()
            image.after_actions[so_far] = data_url(model.apply(image.pixels, list(so_far)))
        images.append(image.after_actions[so_far])
    truths, valid_steps = _truths(run, image, actions)
    return ApplyAnswer(images=images, truths=truths, valid_steps=valid_steps)


def retrieve(run: LoadedRun, before: EncodedImage, after: EncodedImage) -> RetrieveAnswer:
    """The actions that may turn one image into another, the most probable first."""
    model = _model_with_actions(run)
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


def _model_with_actions(run: LoadedRun) -> AppliesActions:
    model: Any = run.model
    if not isinstance(model, AppliesActions):
        raise MissingError("this model has no actions")
    return model


def _truths(
    run: LoadedRun, image: EncodedImage, actions: Sequence[str]
) -> tuple[list[str | None] | None, int | None]:
    """The true image after each action, None from the first that leads beyond the grid; and the number
    of actions before that one, None if all are valid."""
    dataset = run.dataset
    if dataset is None or image.index is None:
        return None, None
    grid = factor_grid(dataset)
    rows = [] if grid is None else grid.rows_after(dataset.factors[image.index], actions)
    images = [_true_image(run, dataset, row) for row in rows]
    truths = [None if image is None else data_url(image) for image in images]
    missing = len(actions) - len(rows)
    return truths + [None] * missing, len(rows) if missing else None


def factor_grid(dataset: Dataset) -> FactorGrid | None:
    """The grid of a data set, cached for all runs on it; None where its factors have none."""
    if dataset not in _grids:
        try:
            _grids[dataset] = FactorGrid(dataset)
        except UsageError:
            _grids[dataset] = None
    return _grids[dataset]


def _true_image(run: LoadedRun, dataset: Dataset, row: FloatArray) -> UInt8Array | None:
    """The image of a row of the factor table, rendered or looked up."""
    if run.simulator is not None:
        rendered: UInt8Array = run.simulator.simulate(row[None]).images[0]
        return rendered
    grid = factor_grid(dataset)
    if grid is None:
        return None
    # Images with equal factors of the grid may differ in others; the true image must not.
    matches = grid.matching(row)
    same = matches[(dataset.factors[matches] == row).all(axis=1)]
    return dataset.images[int(same[0])] if len(same) == 1 else None
