"""Figures of what a model's actions do, from the model and images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from disentwine.contracts.capabilities import Transits
from disentwine.contracts.dataset import UInt8Array
from disentwine.figures.actions import action_graphs
from disentwine.nn.modes import evaluating
from disentwine.nn.pictures import to_unit_range


def repeated_rows(
    model: Transits, image: UInt8Array, *, times: int = 5
) -> tuple[UInt8Array, list[str]]:
    """For each action a row: the image, what is left of it unchanged, and after 1 to `times` actions.

    Arguments:
        model: one that *transitions*.
        image: (height, width, channels).
        times: how often to act.
    """
    first = [image, model.reconstruct(image)]
    rows = [
        np.stack([*first, *(model.apply(image, action, times=t + 1) for t in range(times))])
        for action in range(len(model.actions))
    ]
    return np.stack(rows), [name.replace("_", " ") for name in model.actions]


def graphs_of(model: Any, images: UInt8Array) -> Figure:
    """The mean mask and graph of each action over images, and of none.

    Arguments:
        model: a `CTVAE`.
        images: (n, height, width, channels).
    """
    weight = next(model.parameters())
    with evaluating(model):
        graph = model.graphs(to_unit_range(torch.from_numpy(images)).to(weight))
    grid = model.autoencoder.grid
    mask = graph.mask.mean(0).view(len(model.actions) + 1, -1, *grid).mean(1)
    names = [*model.actions, "nothing"]
    return action_graphs(mask.cpu().numpy(), graph.edges.mean(0).cpu().numpy(), names)
