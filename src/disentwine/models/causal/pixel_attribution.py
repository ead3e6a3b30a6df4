"""Attribution of pixels to groups of concepts, and masks of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from disentwine.causal.concepts import discrete_values, enough_labels
from disentwine.causal.graph import Graph
from disentwine.causal.independence_score import gaussian_kernel
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.errors import warn
from disentwine.nn.layered_decoder import Box

SAMPLES = 800

RARE = 30
"""Least number of images in which a label has another value than its most frequent one."""

RIDGE = 1e-3

SLACK = 0.05
"""Part of a pixel's variance. A set explains a pixel if it explains at most this less than all concepts; a
pixel of which no set explains more is noise."""

SURE = 3.0
"""Standard errors by which fits differ significantly."""

ROUNDING = 1e-12
"""Variance of constants due to rounding; one step of a pixel in one image has more."""

MOST_SETS = 100

LIVELY, FAINT, LEAST_SHARE = 0.02, 0.002, 0.03
"""Pixels with more than the first share of the largest variance decide the groups, and those with more
than the second are attributed to one; sets that a smaller part than the third chooses are noise."""


@dataclass(frozen=True)
class Composition:
    """How images are composed of layers, as learnt from a data set.

    Arguments:
        concept_groups: the concepts that each layer is decoded from.
        group_boxes: the part of the image that each layer covers.
        discrete_values: the values of each concept that is an effect and has few; none of others, and
            of runs of early versions.
    """

    concept_groups: tuple[tuple[int, ...], ...]
    group_boxes: tuple[Box, ...]
    discrete_values: tuple[tuple[float, ...], ...] = ()


class Attribution(NamedTuple):
    """Arguments:
    concept_groups: the concepts of each group.
    attributed_group: (p,) the group that explains each pixel, -1 where pixels are constant.
    visible: for each group, whether it explains any pixel.
    """

    concept_groups: tuple[tuple[int, ...], ...]
    attributed_group: NDArray[np.int64]
    visible: tuple[bool, ...]


def group_concepts(
    labels: FloatArray, pixels: NDArray[np.floating], graph: Graph, *, seed: int = 0
) -> Attribution:
    """Partition the concepts into groups such that one group explains each pixel.

    A pixel is attributed to the smallest set of concepts that predicts it as well as all concepts do,
    by kernel ridge regression on held-out images. Among sets of one size the best predictor is chosen:
    so an effect that nearly determines its cause does not take the cause's pixels. Among equally good
    ones the set furthest down the graph is chosen, since causes act on the pixels of their effects
    through the effects. Sets that overlap are merged. Of many concepts only small sets and the set of
    all are tried.

    Arguments:
        labels: (n, k), without missing values.
        pixels: (n, p) brightness, from 0 to 1.
        graph: of the concepts.
        seed: of the choice of images.

    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(400, 2))
    >>> group_concepts(u, np.tanh(u), Graph.from_edges(("a", "b"), [])).concept_groups
    ((0,), (1,))
    """
    k = labels.shape[1]
    rows = varied_rows(labels, 2 * SAMPLES, seed=seed)
    spread = labels.std(axis=0)
    u = (labels[rows] - labels.mean(axis=0)) / np.where(spread > 0, spread, 1)
    variance = pixels[rows].var(axis=0)
    moving = np.flatnonzero(variance > max(FAINT * variance.max(), ROUNDING))
    y = pixels[rows][:, moving]
    subsets = _subsets(k)
    explained, error = np.stack([_explained(u[:, subset], y) for subset in subsets], axis=1)
    chosen, explicable = _choice(subsets, explained, error, graph)
    lively = explicable & (variance[moving] > LIVELY * variance.max())
    shares = np.bincount(chosen[lively], minlength=len(subsets)) / max(lively.sum(), 1)
    groups: list[set[int]] = [{i} for i in range(k)]
    for s in np.flatnonzero(shares >= LEAST_SHARE):
        touched = [group for group in groups if group & set(subsets[s])]
        groups = [group for group in groups if group not in touched]
        groups.append(set().union(*touched))
    ordered = sorted(tuple(sorted(group)) for group in groups)
    attributed = np.full(pixels.shape[1], -1, dtype=np.int64)
    for pixel, s in zip(moving, chosen, strict=True):
        supersets = [g for g, group in enumerate(ordered) if set(subsets[s]) <= set(group)]
        attributed[pixel] = supersets[0] if supersets else -1
    shown = set(attributed[moving[explicable]].tolist())
    return Attribution(tuple(ordered), attributed, tuple(g in shown for g in range(len(ordered))))


def varied_rows(labels: FloatArray, most: int, *, seed: int = 0) -> IndexArray:
    """Indices of at most so many random rows, which include rows with rare values.

    >>> rare = np.zeros((6000, 1))
    >>> rare[:3] = 1
    >>> int(rare[varied_rows(rare, 100)].sum())
    3
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    rare = np.zeros(len(labels), dtype=bool)
    for column in labels[order].T:
        values, counts = np.unique(column, return_counts=True)
        rare[np.flatnonzero(column != values[counts.argmax()])[:RARE]] = True
    if not rare[most:].any():
        return order[:most]
    # Shuffled again, so that both halves have some of them.
    return rng.permutation(order[np.argsort(~rare, kind="stable")[:most]])


def _choice(
    subsets: list[tuple[int, ...]], explained: FloatArray, error: FloatArray, graph: Graph
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The set (p,) that each pixel is attributed to, and whether any set explains it.

    Arguments:
        subsets: to choose from.
        explained: (sets, p) shares of each pixel's variance.
        error: (sets, p) their standard errors.
        graph: of the concepts.
    """
    size = np.array([len(subset) for subset in subsets])
    enough = explained >= explained.max(axis=0) - SLACK
    for same in (size == n for n in np.unique(size)):
        best = explained[same].argmax(axis=0)[None]
        behind = np.take_along_axis(explained[same], best, axis=0) - explained[same]
        chance = np.hypot(np.take_along_axis(error[same], best, axis=0), error[same])
        enough[same] &= behind <= SURE * chance
    # The first of the remaining sets is the smallest, and the furthest down the graph.
    depth = {graph.names.index(name): rank for rank, name in enumerate(graph.order)}
    order = np.array(
        sorted(range(len(subsets)), key=lambda s: (size[s], -sum(depth[i] for i in subsets[s])))
    )
    return order[enough[order].argmax(axis=0)], explained.max(axis=0) > SLACK


def _subsets(k: int) -> list[tuple[int, ...]]:
    """All sets of k concepts, or the smallest `MOST_SETS` and the set of all.

    >>> len(_subsets(4)), len(_subsets(12)), _subsets(12)[-1] == tuple(range(12))
    (15, 79, True)
    """
    found: list[tuple[int, ...]] = []
    for size in range(1, k):
        more = list(combinations(range(k), size))
        if found and len(found) + len(more) > MOST_SETS:
            break
        found += more
    return [*found, tuple(range(k))]


def _explained(u: FloatArray, y: NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
    """Share of each pixel's variance that concepts predict on the held-out half of the images, and its
    standard error."""
    half = len(u) // 2
    kernel = partial(gaussian_kernel, variance=(0.35 * np.sqrt(u.shape[1])) ** 2)
    mean = y[:half].mean(axis=0)
    gram = kernel(u[:half], u[:half]) + RIDGE * half / 100 * np.eye(half)
    predicted = kernel(u[half:], u[:half]) @ np.linalg.solve(gram, y[:half] - mean) + mean
    squares = (y[half:] - predicted) ** 2
    variance = np.maximum(y[half:].var(axis=0), ROUNDING)
    error = squares.std(axis=0) / np.sqrt(len(squares))
    return np.asarray(1 - squares.mean(axis=0) / variance), np.asarray(error / variance)


GROUPS_FROM = 2000

HIDDEN = 0.05
"""Part of a channel's variance; where the mean of all channels has less, the channel is used."""

REACH = 32
"""A layer is visible up to 1/32 of the image height around its own pixels."""


def learn_composition(dataset: Dataset, graph: Graph) -> tuple[Composition, Tensor]:
    """The composition of a data set's images, and masks (groups, height, width): 1 on the pixels of each
    group and a little around them.

    Warns of every concept for which neither a pixel nor an effect with pixels is found.

    Arguments:
        dataset: its training images with all labels are used.
        graph: over the concepts.
    """
    labels = enough_labels(dataset, to_learn="which pixels show which concept")
    train = dataset.split["train"]
    labelled = train[np.isfinite(dataset.factors[train]).all(axis=1)]
    some = labelled[varied_rows(labels, GROUPS_FROM)]
    shown = brightness(dataset.images[some]).reshape(len(some), -1) / 255
    attribution = group_concepts(dataset.factors[some], shown, graph)
    for name in _invisible(attribution, graph):
        warn(
            f"do({name}=...) will change nothing: no pixel was found that follows '{name}', or an effect "
            f"of it. Its effect on the image may be too faint (below {FAINT:.1%} of the largest variance "
            f"of a pixel), too rare, or explained as well by other labels; show it more strongly or in "
            f"more images, or leave it out"
        )
    height, width, _ = dataset.image_shape
    groups = attribution.concept_groups
    attributed = torch.from_numpy(attribution.attributed_group).view(height, width)
    own = torch.stack([attributed == g for g in range(len(groups))]).float()
    reach = max(1, height // REACH)
    masks = F.max_pool2d(own, 2 * reach + 1, 1, reach)
    boxes = tuple(box_around(mask) for mask in masks)
    return Composition(groups, boxes, discrete_values(dataset, graph)), masks


def box_around(mask: Tensor) -> Box:
    """The smallest box around a mask; the whole image if the mask is empty.

    >>> mask = torch.zeros(8, 8)
    >>> mask[2:4, 5] = 1
    >>> box_around(mask)
    (2, 5, 4, 6)
    """
    rows, columns = (torch.nonzero(mask.any(dim))[:, 0].tolist() for dim in (1, 0))
    if not rows:
        return 0, 0, mask.shape[0], mask.shape[1]
    return rows[0], columns[0], rows[-1] + 1, columns[-1] + 1


def _invisible(attribution: Attribution, graph: Graph) -> list[str]:
    """The concepts without visible pixels, also of their effects."""
    shown = {
        graph.names[i]
        for group, visible in zip(attribution.concept_groups, attribution.visible, strict=True)
        for i in group
        if visible
    }
    return [name for name in graph.names if not shown & {name, *graph.descendants(name)}]


def brightness(images: UInt8Array) -> FloatArray:
    """Brightness (n, height, width) of images: the mean of the channels or, where it hides a change of
    hue, the channel with the largest variance.

    >>> red_to_green = np.array([[200, 0, 0], [100, 100, 0], [0, 200, 0]], np.uint8)
    >>> brightness(red_to_green.reshape(3, 1, 1, 3))[:, 0, 0]
    array([200., 100.,   0.])
    """
    grey, variances = images.mean(axis=-1), images.var(axis=0)
    liveliest = variances.argmax(axis=-1)[None, ..., None]
    hidden = grey.var(axis=0) < HIDDEN * variances.max(axis=-1)
    hue = np.take_along_axis(images, liveliest, axis=-1)[..., 0]
    return np.asarray(np.where(hidden, hue, grey))
