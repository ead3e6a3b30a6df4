"""Which concepts are painted together: the smallest sets that explain what each pixel does."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from disentwine.causal.graph import Graph
from disentwine.contracts.dataset import FloatArray, IndexArray

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
