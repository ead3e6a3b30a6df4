"""Which concepts explain which pixel; regions/boxes of each concept group."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from disentwine.causal.concepts import enough_labels
from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.errors import warn
from disentwine.nn.layered_decoder import Box

SAMPLES = 800

RARE = 30
"""Images to look at, at least, in which a label has another value than its most frequent one."""

RIDGE = 1e-3

SLACK = 0.05
"""A set explains a pixel when it falls short of all concepts together by no more of its variance; what
none explains more of is noise."""

SURE = 3.0
"""Standard errors by which the fits of two sets differ that are not equally good."""

ROUNDING = 1e-12
"""A variance that equal numbers have as well, by rounding; one step of a pixel in one image has more."""

MOST_SETS = 100

LIVELY, FAINT, LEAST_SHARE = 0.02, 0.002, 0.03
"""Pixels that vary more than the first share of the liveliest one's variance decide the groups, and
those above the second are given to one; sets that fewer than the third choose are noise."""


class Grouping(NamedTuple):
    """Arguments:
    groups: the concepts of each group.
    owner: (p,) the group that each pixel belongs to, -1 where nothing happens.
    seen: for each group, whether it explains any pixel that belongs to it.
    """

    groups: tuple[tuple[int, ...], ...]
    owner: NDArray[np.int64]
    seen: tuple[bool, ...]


def group_concepts(
    labels: FloatArray, pixels: NDArray[np.floating], graph: Graph, *, seed: int = 0
) -> Grouping:
    """Split the concepts into groups such that every pixel is explained by one of them.

    A pixel is given to the smallest set of concepts that predicts it as well as all of them do,
    by kernel ridge regression on held-out images. Where several of a size do, it is given to the one
    that predicts it best: an effect that nearly determines its cause does not take its pixels. Among
    equally good ones it is the set furthest down the graph, since a cause acts on what its effects show
    through them. Sets that overlap are merged. Of many concepts only small sets are tried, and the one
    of all.

    Arguments:
        labels: (n, k), without missing values.
        pixels: (n, p) brightness, from 0 to 1.
        graph: of the concepts.
        seed: of the images that are looked at.

    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(400, 2))
    >>> group_concepts(u, np.tanh(u), Graph.from_edges(("a", "b"), [])).groups
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
    chosen, told = _choice(subsets, explained, error, graph)
    lively = told & (variance[moving] > LIVELY * variance.max())
    shares = np.bincount(chosen[lively], minlength=len(subsets)) / max(lively.sum(), 1)
    groups: list[set[int]] = [{i} for i in range(k)]
    for s in np.flatnonzero(shares >= LEAST_SHARE):
        touched = [group for group in groups if group & set(subsets[s])]
        groups = [group for group in groups if group not in touched]
        groups.append(set().union(*touched))
    ordered = sorted(tuple(sorted(group)) for group in groups)
    owner = np.full(pixels.shape[1], -1, dtype=np.int64)
    for pixel, s in zip(moving, chosen, strict=True):
        holders = [g for g, group in enumerate(ordered) if set(subsets[s]) <= set(group)]
        owner[pixel] = holders[0] if holders else -1
    shown = set(owner[moving[told]].tolist())
    return Grouping(tuple(ordered), owner, tuple(g in shown for g in range(len(ordered))))


def varied_rows(labels: FloatArray, most: int, *, seed: int = 0) -> IndexArray:
    """So many rows at random at most, but such in which a rare value occurs are not missed.

    >>> rare = np.zeros((6000, 1))
    >>> rare[:3] = 1
    >>> int(rare[varied_rows(rare, 100)].sum())
    3
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    wanted = np.zeros(len(labels), dtype=bool)
    for column in labels[order].T:
        values, counts = np.unique(column, return_counts=True)
        wanted[np.flatnonzero(column != values[counts.argmax()])[:RARE]] = True
    if not wanted[most:].any():
        return order[:most]
    # Shuffled again, so that either half of them has some.
    return rng.permutation(order[np.argsort(~wanted, kind="stable")[:most]])


def _choice(
    subsets: list[tuple[int, ...]], explained: FloatArray, error: FloatArray, graph: Graph
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The set (p,) of each pixel, and whether any explains it.

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
    # The first that is left is the smallest, and the furthest down the graph.
    depth = {graph.names.index(name): rank for rank, name in enumerate(graph.order)}
    order = np.array(
        sorted(range(len(subsets)), key=lambda s: (size[s], -sum(depth[i] for i in subsets[s])))
    )
    return order[enough[order].argmax(axis=0)], explained.max(axis=0) > SLACK


def _subsets(k: int) -> list[tuple[int, ...]]:
    """All sets of k concepts, or so many of the smallest as can be tried, and the one of all.

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
    """Share of each pixel's variance that concepts predict on the other half of the images, and its
    standard error."""
    half = len(u) // 2
    width = 0.35 * np.sqrt(u.shape[1])

    def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
        squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        return np.asarray(np.exp(-np.maximum(squares, 0) / (2 * width**2)))

    mean = y[:half].mean(axis=0)
    gram = kernel(u[:half], u[:half]) + RIDGE * half / 100 * np.eye(half)
    predicted = kernel(u[half:], u[:half]) @ np.linalg.solve(gram, y[:half] - mean) + mean
    squares = (y[half:] - predicted) ** 2
    variance = np.maximum(y[half:].var(axis=0), ROUNDING)
    error = squares.std(axis=0) / np.sqrt(len(squares))
    return np.asarray(1 - squares.mean(axis=0) / variance), np.asarray(error / variance)


GROUPS_FROM = 2000

HIDDEN = 0.05
"""Of a channel's variance: where the mean of all channels has less, it hides what changes."""

REACH = 32
"""A painter may paint this share of the image's height beyond the pixels that are its own."""


def learn_regions(dataset: Dataset, graph: Graph) -> tuple[tuple[tuple[int, ...], ...], Tensor]:
    """The concepts of each group, and (groups, height, width) 1 on the pixels of each and a little
    around them.

    Warns of every concept that neither a pixel nor an effect with pixels shows.

    Arguments:
        dataset: its training images with all labels count.
        graph: of the concepts.
    """
    labels = enough_labels(dataset, to_learn="which pixels show which concept")
    train = dataset.split["train"]
    labelled = train[np.isfinite(dataset.factors[train]).all(axis=1)]
    some = labelled[varied_rows(labels, GROUPS_FROM)]
    shown = brightness(dataset.images[some]).reshape(len(some), -1) / 255
    grouping = group_concepts(dataset.factors[some], shown, graph)
    for name in _unseen(grouping, graph):
        warn(
            f"do({name}=...) will change nothing: no pixel was found that follows '{name}', or an effect "
            f"of it. What it changes may be too faint (below {FAINT:.1%} of the variance of the liveliest "
            f"pixel), too rare, or told as well by other labels; show it more strongly or in more "
            f"images, or leave it out"
        )
    height, width, _ = dataset.image_shape
    owner = torch.from_numpy(grouping.owner).view(height, width)
    owned = torch.stack([owner == g for g in range(len(grouping.groups))]).float()
    reach = max(1, height // REACH)
    return grouping.groups, F.max_pool2d(owned, 2 * reach + 1, 1, reach)


def box_around(region: Tensor) -> Box:
    """The smallest box around a region; the whole image where it is empty.

    >>> region = torch.zeros(8, 8)
    >>> region[2:4, 5] = 1
    >>> box_around(region)
    (2, 5, 4, 6)
    """
    rows, columns = (torch.nonzero(region.any(dim))[:, 0].tolist() for dim in (1, 0))
    if not rows:
        return 0, 0, region.shape[0], region.shape[1]
    return rows[0], columns[0], rows[-1] + 1, columns[-1] + 1


def _unseen(grouping: Grouping, graph: Graph) -> list[str]:
    """The concepts that no pixel shows, be it through their effects."""
    visible = {
        graph.names[i]
        for group, seen in zip(grouping.groups, grouping.seen, strict=True)
        for i in group
        if seen
    }
    return [name for name in graph.names if not visible & {name, *graph.descendants(name)}]


def brightness(images: UInt8Array) -> FloatArray:
    """(n, height, width, channels) to (n, height, width): the mean of the channels or, where it hides a
    change of hue, the channel that changes most.

    >>> red_to_green = np.array([[200, 0, 0], [100, 100, 0], [0, 200, 0]], np.uint8)
    >>> brightness(red_to_green.reshape(3, 1, 1, 3))[:, 0, 0]
    array([200., 100.,   0.])
    """
    grey, variances = images.mean(axis=-1), images.var(axis=0)
    liveliest = variances.argmax(axis=-1)[None, ..., None]
    hidden = grey.var(axis=0) < HIDDEN * variances.max(axis=-1)
    hue = np.take_along_axis(images, liveliest, axis=-1)[..., 0]
    return np.asarray(np.where(hidden, hue, grey))
