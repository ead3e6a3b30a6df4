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
"""Number of rows with a rare value of each label that subsamples include."""

RIDGE = 1e-3

SLACK = 0.05
"""Share of a pixel's variance. A set explains a pixel if its share is within `SLACK` of the largest one; a
pixel is noise if no set explains more than `SLACK` of it."""

SIGNIFICANT = 3.0
"""Number of standard errors by which fits differ significantly."""

ROUNDING = 1e-12
"""Upper bound on the variance of constants due to rounding."""

MAX_SETS = 100

GROUPING_VARIANCE, ATTRIBUTION_VARIANCE = 0.02, 0.002
"""Pixels with more than these shares of the largest variance determine the groups, and are attributed to
a group."""

MIN_SHARE = 0.03
"""Share of the pixels below which a set does not determine groups."""


@dataclass(frozen=True)
class Composition:
    """How images are composed of layers, as learnt from a data set.

    Arguments:
        concept_groups: the concepts of each layer.
        group_boxes: the part of the image that each layer covers.
        discrete_values: the values of each effect with few values; empty for other concepts, and for
            runs of early versions.
    """

    concept_groups: tuple[tuple[int, ...], ...]
    group_boxes: tuple[Box, ...]
    discrete_values: tuple[tuple[float, ...], ...] = ()


class Attribution(NamedTuple):
    """Groups of concepts, and the group of each pixel.

    Arguments:
        concept_groups: the concepts of each group.
        attributed_group: (p,) the group that explains each pixel, -1 for constant pixels.
        visible: whether each group explains any pixel.
    """

    concept_groups: tuple[tuple[int, ...], ...]
    attributed_group: NDArray[np.int64]
    visible: tuple[bool, ...]


def group_concepts(
    labels: FloatArray, pixels: NDArray[np.floating], graph: Graph, *, seed: int = 0
) -> Attribution:
    """Partition the concepts into groups such that one group explains each pixel.

    A pixel is attributed to the smallest set of concepts that predicts it as well as all concepts, by
    kernel ridge regression on held-out images. Among sets of the same size the best predictor is chosen,
    so that pixels of a cause are not attributed to an effect that nearly determines it. Among equally
    good sets the one furthest down the graph is chosen, as causes change the pixels of their effects
    through the effects. Overlapping sets are merged. With many concepts, only small sets and the set of
    all concepts are evaluated.

    Arguments:
        labels: (n, k), without missing values.
        pixels: (n, p) brightness, from 0 to 1.
        graph: causal graph of the concepts.
        seed: of the subsample of images.

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
    varying = np.flatnonzero(variance > max(ATTRIBUTION_VARIANCE * variance.max(), ROUNDING))
    y = pixels[rows][:, varying]
    subsets = _subsets(k)
    explained, error = np.stack([_explained(u[:, subset], y) for subset in subsets], axis=1)
    chosen, is_explained = _choose_sets(subsets, explained, error, graph)
    decisive = is_explained & (variance[varying] > GROUPING_VARIANCE * variance.max())
    shares = np.bincount(chosen[decisive], minlength=len(subsets)) / max(decisive.sum(), 1)
    groups: list[set[int]] = [{i} for i in range(k)]
    for s in np.flatnonzero(shares >= MIN_SHARE):
        overlapping = [group for group in groups if group & set(subsets[s])]
        groups = [group for group in groups if group not in overlapping]
        groups.append(set().union(*overlapping))
    ordered = sorted(tuple(sorted(group)) for group in groups)
    attributed = np.full(pixels.shape[1], -1, dtype=np.int64)
    for pixel, s in zip(varying, chosen, strict=True):
        supersets = [g for g, group in enumerate(ordered) if set(subsets[s]) <= set(group)]
        attributed[pixel] = supersets[0] if supersets else -1
    shown = set(attributed[varying[is_explained]].tolist())
    return Attribution(tuple(ordered), attributed, tuple(g in shown for g in range(len(ordered))))


def varied_rows(labels: FloatArray, most: int, *, seed: int = 0) -> IndexArray:
    """Indices of at most `most` random rows, which include rows with rare values.

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
    # Shuffled again, so that both halves include rare values.
    return rng.permutation(order[np.argsort(~rare, kind="stable")[:most]])


def _choose_sets(
    subsets: list[tuple[int, ...]], explained: FloatArray, error: FloatArray, graph: Graph
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The set (p,) to which each pixel is attributed, and whether any set explains it.

    Arguments:
        subsets: candidate sets.
        explained: (sets, p) explained shares of each pixel's variance.
        error: (sets, p) their standard errors.
        graph: causal graph of the concepts.
    """
    size = np.array([len(subset) for subset in subsets])
    candidates = explained >= explained.max(axis=0) - SLACK
    for same in (size == n for n in np.unique(size)):
        best = explained[same].argmax(axis=0)[None]
        behind = np.take_along_axis(explained[same], best, axis=0) - explained[same]
        standard_error = np.hypot(np.take_along_axis(error[same], best, axis=0), error[same])
        candidates[same] &= behind <= SIGNIFICANT * standard_error
    # The first candidate in this order is the smallest, and the furthest down the graph.
    depth = {graph.names.index(name): rank for rank, name in enumerate(graph.order)}
    order = np.array(
        sorted(range(len(subsets)), key=lambda s: (size[s], -sum(depth[i] for i in subsets[s])))
    )
    return order[candidates[order].argmax(axis=0)], explained.max(axis=0) > SLACK


def _subsets(k: int) -> list[tuple[int, ...]]:
    """All sets of k concepts, or at most `MAX_SETS` of the smallest and the set of all.

    >>> len(_subsets(4)), len(_subsets(12)), _subsets(12)[-1] == tuple(range(12))
    (15, 79, True)
    """
    found: list[tuple[int, ...]] = []
    for size in range(1, k):
        same_size = list(combinations(range(k), size))
        if found and len(found) + len(same_size) > MAX_SETS:
            break
        found += same_size
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


MAX_IMAGES = 2000

MIN_GREY_VARIANCE = 0.05
"""Share of the largest channel variance; if the mean of the channels has less, that channel is used."""

MARGIN_DIVISOR = 32
"""Layers extend beyond their own pixels by 1/32 of the image height."""


def learn_composition(dataset: Dataset, graph: Graph) -> tuple[Composition, Tensor]:
    """The composition of a data set's images, and masks (groups, height, width): 1 on the pixels of each
    group and in a margin around them.

    Warns about concepts without detectable effect on any pixel, directly or through their effects.

    Arguments:
        dataset: its training images with all labels are used.
        graph: over the concepts.
    """
    labels = enough_labels(dataset, to_learn="which pixels show which concept")
    train = dataset.split["train"]
    labelled = train[np.isfinite(dataset.factors[train]).all(axis=1)]
    indices = labelled[varied_rows(labels, MAX_IMAGES)]
    grey = brightness(dataset.images[indices]).reshape(len(indices), -1) / 255
    attribution = group_concepts(dataset.factors[indices], grey, graph)
    for name in _invisible(attribution, graph):
        warn(
            f"do({name}=...) will change nothing: no pixel was found that follows '{name}', or an effect "
            f"of it. Its effect on the image may be too faint (below {ATTRIBUTION_VARIANCE:.1%} of the "
            f"largest variance of a pixel), too rare, or explained as well by other labels; show it more "
            f"strongly or in more images, or leave it out"
        )
    height, width, _ = dataset.image_shape
    groups = attribution.concept_groups
    attributed = torch.from_numpy(attribution.attributed_group).view(height, width)
    own = torch.stack([attributed == g for g in range(len(groups))]).float()
    margin = max(1, height // MARGIN_DIVISOR)
    masks = F.max_pool2d(own, 2 * margin + 1, 1, margin)
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
    channel = variances.argmax(axis=-1)[None, ..., None]
    hidden = grey.var(axis=0) < MIN_GREY_VARIANCE * variances.max(axis=-1)
    hue = np.take_along_axis(images, channel, axis=-1)[..., 0]
    return np.asarray(np.where(hidden, hue, grey))
