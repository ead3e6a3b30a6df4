"""Repeated-action figure, action graphs; report sections on actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.core.capabilities import AppliesActions
from disentwine.core.dataset import Dataset
from disentwine.core.types import IndexArray, UInt8Array
from disentwine.data.factor_grid import FactorGrid
from disentwine.data.splits import evenly_spaced
from disentwine.figures.actions import action_graphs, confusion_matrix
from disentwine.figures.images import labelled_rows
from disentwine.nn.images import evaluation_mode, to_unit_range
from disentwine.report.context import ReportContext
from disentwine.report.html import Picture, Section
from disentwine.report.text import number


def repeated_figure(
    model: AppliesActions, dataset: Dataset, images: IndexArray, *, times: int = 5
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
    steps = FactorGrid(dataset)
    images = images[steps.key[images] >= 0]
    if not len(images):
        return None
    reach = steps.steps_available(images, times=times)
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
    model: AppliesActions, image: UInt8Array, reach: Sequence[int], *, times: int
) -> UInt8Array:
    """(actions, 2 + times, height, width, channels), blank after as many actions as `steps_available` has."""
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


def real_rows(dataset: Dataset, steps: FactorGrid, start: int, *, times: int) -> UInt8Array:
    """(actions, times, height, width, channels) the images that 1 to `times` actions lead to, blank where
    there is none that differs in nothing else."""
    far = np.arange(1, times + 1)
    from_here = np.full(times, start)
    there = np.stack(
        [
            steps.neighbours(from_here, factor, by * far)
            for factor in steps.columns
            for by in (1, -1)
        ]
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
    with evaluation_mode(model):
        graph = model.graphs(to_unit_range(torch.from_numpy(images)).to(weight))
    grid = model.autoencoder.grid
    mask = graph.mask.mean(0).view(len(model.actions) + 1, -1, *grid).mean(1)
    names = [*model.actions, "nothing"]
    return action_graphs(mask.cpu().numpy(), graph.edges.mean(0).cpu().numpy(), names)


REPEATS = 5

MEAN_OF = 64
"""Images that masks and graphs are a mean of."""


def actions(subject: ReportContext) -> Section | None:
    """One image under every action, again and again."""
    model: Any = subject.model
    if not isinstance(model, AppliesActions):
        return None
    figure = repeated_figure(model, subject.dataset, subject.found.indices, times=REPEATS)
    if figure is None:
        return None
    text = (
        f"One test image, its reconstruction, and what {REPEATS} actions make of it, one by one, each beside "
        "the real image, as far as factors go and the data have it."
    )
    share = subject.found.score("intervention-share")
    if share is not None:
        less = number(round(share.value, 3))
        text += f" The error of a pixel after one is {less} of that of doing nothing."
    return Section(
        "What actions do",
        text,
        Picture(
            "actions",
            f"Images under {', '.join(model.actions)}",
            figures.to_png_bytes(figure),
        ),
    )


def confusions(subject: ReportContext) -> Section | None:
    """Which action is taken for which."""
    score = subject.found.score("action-accuracy")
    factor = subject.found.score("factor-accuracy")
    if score is None or factor is None or "confusion" not in score.details:
        return None
    text = (
        f"Of {score.n:,} pairs of images the action is retrieved in {score.value:.1%}, its factor in "
        f"{factor.value:.1%}; always answering the commonest would be right in "
        f"{score.noise_floor or 0:.1%} and {factor.noise_floor or 0:.1%}."
    )
    figure = confusion_matrix(score.details["confusion"], score.details["names"])
    return Section(
        "Which action it was",
        text,
        Picture(
            "confusion",
            "Heat map of true actions by retrieved ones",
            figures.to_png_bytes(figure),
        ),
    )


def touched(subject: ReportContext) -> Section | None:
    """Where each action is felt, and which codes depend on which."""
    model: Any = subject.model
    if not isinstance(model, AppliesActions) or not hasattr(model, "graphs"):
        return None
    images = subject.dataset.images[evenly_spaced(subject.found.indices, MEAN_OF)]
    return Section(
        "What each action touches",
        "Above, how likely an action changes the codes of each place of the picture; below, how likely a "
        f"code after it (row) depends on a code before it (column). Means of {len(images)} images, the "
        "darker the likelier; to do nothing should touch nothing, and leave every code to itself.",
        Picture(
            "touched",
            "Maps of where each action is felt, and matrices of which codes depend on which",
            figures.to_png_bytes(graphs_of(model, images)),
        ),
    )
