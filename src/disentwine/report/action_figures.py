"""Figures of what a model's actions do, from the model and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from disentwine.contracts.capabilities import Transits
from disentwine.contracts.dataset import Dataset, IndexArray, UInt8Array
from disentwine.data.stepping import Steps
from disentwine.figures.actions import action_graphs
from disentwine.figures.images import labelled_rows
from disentwine.nn.modes import evaluating
from disentwine.nn.pictures import to_unit_range


def repeated_figure(
    model: Transits, dataset: Dataset, images: IndexArray, *, times: int = 5
) -> Figure | None:
    """For each action a row: an image, what is left of it unchanged, and after 1 to `times` actions what
    the model makes, each beside the real image where there is one.

    Of some images the one is shown whose factors have most room both ways. What is beyond the end of a
    factor is left out: no pair tells what becomes of it. Nothing is drawn where no image has labels.

    Arguments:
        model: one that *transitions*.
        dataset: whose actions the model knows.
        images: (n,) those to choose from.
        times: how often to act at most.
    """
    steps = Steps(dataset)
    images = images[steps.key[images] >= 0]
    if not len(images):
        return None
    reach = steps.reach(images, times=times)
    room = np.sqrt(reach).sum(1)  # a little in each direction beats much in one
    best = np.flatnonzero(room == room.max())
    chosen = best[len(best) // 2]  # the first ones look alike in sorted data
    start = images[chosen]
    times = max(1, int(reach[chosen].max()))
    made = repeated_rows(model, dataset.images[start], reach[chosen].tolist(), times=times)
    real = real_rows(dataset, steps, int(start), times=times)
    pairs = np.stack([made[:, 2:], real], axis=2).reshape(len(made), -1, *made.shape[2:])
    columns = ["image, rebuilt", "once: made, real", *(f"{t} times" for t in range(2, times + 1))]
    names = [name.replace("_", " ") for name in model.actions]
    return labelled_rows(np.concatenate([made[:, :2], pairs], axis=1), names, columns, group=2)


def repeated_rows(
    model: Transits, image: UInt8Array, reach: Sequence[int], *, times: int
) -> UInt8Array:
    """(actions, 2 + times, height, width, channels), blank after as many actions as `reach` has."""
    blank = np.full_like(image, 255)
    first = [image, model.reconstruct(image)]
    return np.stack(
        [
            [
                *first,
                *(model.apply(image, a, times=t + 1) if t < far else blank for t in range(times)),
            ]
            for a, far in enumerate(reach)
        ]
    )


def real_rows(dataset: Dataset, steps: Steps, start: int, *, times: int) -> UInt8Array:
    """(actions, times, height, width, channels) the images that 1 to `times` actions lead to, blank where
    there is none that differs in nothing else."""
    far = np.arange(1, times + 1)
    from_here = np.full(times, start)
    there = np.stack(
        [steps.moved(from_here, factor, by * far) for factor in steps.columns for by in (1, -1)]
    )
    differs = dataset.factors[there] != dataset.factors[start]
    there[differs.sum(axis=2) > 1] = -1
    rows = np.full((*there.shape, *dataset.image_shape), 255, np.uint8)
    rows[there >= 0] = dataset.images[there[there >= 0]]
    return rows


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
