"""Report sections on actions: rollouts, retrieval and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.core.capabilities import AppliesActions
from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.types import IndexArray, UInt8Array
from disentwine.data.factor_grid import FactorGrid
from disentwine.figures import actions as action_figures
from disentwine.figures.images import labelled_rows
from disentwine.nn.images import evaluation_mode, to_unit_range
from disentwine.report.context import ReportContext
from disentwine.report.html import Image, Section
from disentwine.report.text import number


def rollout_figure(
    model: AppliesActions, dataset: Dataset, images: IndexArray, *, times: int = 5
) -> Figure | None:
    """A row for each action: an image, its reconstruction, and the predicted images after 1 to `times`
    actions, each beside the real image if the data set has it.

    The figure shows the image whose factors have the most values on both sides. Steps beyond the end
    of a factor are left out, because no pair trains them. The result is None if no image has labels.

    Arguments:
        model: a model that *transitions*.
        dataset: the data set of the model's actions.
        images: (n,) indices to choose from.
        times: largest number of repetitions.
    """
    steps = FactorGrid(dataset)
    images = images[steps.key[images] >= 0]
    if not len(images):
        return None
    available = steps.steps_available(images, times=times)
    room = np.sqrt(available).sum(1)  # some steps in each direction beat many in one
    best = np.flatnonzero(room == room.max())
    chosen = best[len(best) // 2]  # the first ones are similar in sorted data
    start = images[chosen]
    times = max(1, int(available[chosen].max()))
    rows = rollout_rows(model, dataset.images[start], available[chosen].tolist(), times=times)
    real = real_rows(dataset, steps, int(start), times=times)
    pairs = np.stack([rows[:, 2:], real], axis=2).reshape(len(rows), -1, *rows.shape[2:])
    columns = [
        "image, reconstruction",
        "1 step: predicted, real",
        *(f"{t} steps" for t in range(2, times + 1)),
    ]
    names = [name.replace("_", " ") for name in model.actions]
    return labelled_rows(np.concatenate([rows[:, :2], pairs], axis=1), names, columns, group=2)


def rollout_rows(
    model: AppliesActions, image: UInt8Array, available: Sequence[int], *, times: int
) -> UInt8Array:
    """Images (actions, 2 + times, height, width, channels): the image, its reconstruction and the
    rollout of each action, blank beyond its available steps."""
    blank = np.full_like(image, 255)
    first = [image, model.reconstruct(image)]
    return np.stack(
        [
            [
                *first,
                *(model.apply(image, a, times=t + 1) if t < most else blank for t in range(times)),
            ]
            for a, most in enumerate(available)
        ]
    )


def real_rows(dataset: Dataset, steps: FactorGrid, start: int, *, times: int) -> UInt8Array:
    """The real images (actions, times, height, width, channels) after 1 to `times` actions, blank where
    the data set has none that differs in this factor only."""
    distance = np.arange(1, times + 1)
    from_here = np.full(times, start)
    there = np.stack(
        [
            steps.neighbours(from_here, factor, by * distance)
            for factor in steps.columns
            for by in (1, -1)
        ]
    )
    differs = dataset.factors[there] != dataset.factors[start]
    there[differs.sum(axis=2) > 1] = -1
    rows = np.full((*there.shape, *dataset.image_shape), 255, np.uint8)
    rows[there >= 0] = dataset.images[there[there >= 0]]
    return rows


def action_graphs_figure(model: Any, images: UInt8Array) -> Figure:
    """The mean mask and graph of each action, and of no action, over images.

    Arguments:
        model: a `CTVAE`.
        images: (n, height, width, channels).
    """
    weight = next(model.parameters())
    with evaluation_mode(model):
        graph = model.graphs(to_unit_range(torch.from_numpy(images)).to(weight))
    grid = model.mcq_vae.grid
    mask = graph.mask.mean(0).view(len(model.actions) + 1, -1, *grid).mean(1)
    names = [*model.actions, "no action"]
    return action_figures.action_graphs(
        mask.cpu().numpy(), graph.edges.mean(0).cpu().numpy(), names
    )


REPEATS = 5
"""Actions of a rollout in the report."""

MEAN_OF = 64
"""Images over which masks and graphs are averaged."""


def action_rollouts(context: ReportContext) -> Section | None:
    """Rollouts of every action from one test image."""
    model: Any = context.model
    if not isinstance(model, AppliesActions):
        return None
    figure = rollout_figure(model, context.dataset, context.found.indices, times=REPEATS)
    if figure is None:
        return None
    text = (
        f"A test image, its reconstruction, and the predicted images after 1 to {REPEATS} actions, each "
        "beside the real image where the data set has it."
    )
    share = context.found.score("intervention-share")
    if share is not None:
        ratio = number(round(share.value, 3))
        text += f" The squared pixel error after one action is {ratio} times that of the unchanged image."
    return Section(
        "Action rollouts",
        text,
        Image(
            "actions",
            f"Images under {', '.join(model.actions)}",
            figures.to_png_bytes(figure),
        ),
    )


def action_retrieval(context: ReportContext) -> Section | None:
    """Accuracy and confusion matrix of action retrieval."""
    score = context.found.score("action-accuracy")
    factor = context.found.score("factor-accuracy")
    if score is None or factor is None or "confusion" not in score.details:
        return None
    text = (
        f"On {score.n:,} pairs of images, action accuracy is {score.value:.1%} and factor accuracy "
        f"{factor.value:.1%}. Chance level (the most frequent answer): "
        f"{score.noise_floor or 0:.1%} and {factor.noise_floor or 0:.1%}."
    )
    figure = action_figures.confusion_matrix(score.details["confusion"], score.details["names"])
    return Section(
        "Action retrieval",
        text,
        Image(
            "confusion",
            "Confusion matrix of true and retrieved actions",
            figures.to_png_bytes(figure),
        ),
    )


def action_graphs(context: ReportContext) -> Section | None:
    """Masks and graphs of each action."""
    model: Any = context.model
    if not isinstance(model, AppliesActions) or not hasattr(model, "graphs"):
        return None
    images = context.dataset.images[evenly_spaced(context.found.indices, MEAN_OF)]
    return Section(
        "Action graphs",
        "Top: probability that an action affects the codes at each position of the image. Bottom: "
        "probability that a code after the action (row) depends on a code before it (column). Means of "
        f"{len(images)} images; darker is more probable. Without action the mask should be empty and the "
        "graph the identity.",
        Image(
            "action-graphs",
            "Masks of actions on the image grid, and adjacency matrices of codes",
            figures.to_png_bytes(action_graphs_figure(model, images)),
        ),
    )
