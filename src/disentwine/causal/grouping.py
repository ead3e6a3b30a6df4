"""Which concepts are painted together: the smallest sets that explain what each pixel does."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from disentwine.causal.graph import Graph
from disentwine.contracts.dataset import FloatArray

SAMPLES, PIXELS = 800, 600
RIDGE = 1e-3
SLACK = 0.05
"""A set explains a pixel when it falls short of all concepts together by no more of its variance."""

LIVELY, LEAST_SHARE = 0.02, 0.03
"""Pixels that vary less than this share of the liveliest one's variance are not looked at; sets that are
chosen by fewer of the others are noise."""


def group_concepts(
    labels: FloatArray, pixels: NDArray[np.floating], graph: Graph, *, seed: int = 0
) -> tuple[tuple[int, ...], ...]:
    """Split the concepts into groups such that every pixel is explained by one of them.

    A pixel is given to the smallest set of concepts that predicts it as well as all of them do,
    by kernel ridge regression on held-out images; where several do, to the set furthest down the
    graph, since a cause acts on what its effects show through them. Sets that overlap are merged.

    Arguments:
        labels: (n, k), without missing values.
        pixels: (n, p) brightness.
        graph: of the concepts.
        seed: of the images and pixels that are looked at.

    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(400, 2))
    >>> group_concepts(u, np.tanh(u), Graph.from_edges(("a", "b"), []))
    ((0,), (1,))
    """
    rng = np.random.default_rng(seed)
    k = labels.shape[1]
    rows = rng.permutation(len(labels))[: 2 * SAMPLES]
    u = (labels[rows] - labels.mean(axis=0)) / labels.std(axis=0)
    variance = pixels[rows].var(axis=0)
    lively = rng.permutation(np.flatnonzero(variance > LIVELY * variance.max()))[:PIXELS]
    y = pixels[rows][:, lively]
    explained = {
        subset: _explained(u[:, subset], y)
        for size in range(1, k + 1)
        for subset in combinations(range(k), size)
    }
    depth = {name: rank for rank, name in enumerate(graph.order)}
    shares: dict[tuple[int, ...], float] = {}
    best = np.max(list(explained.values()), axis=0)
    for pixel in range(y.shape[1]):
        enough = [s for s, r in explained.items() if r[pixel] >= best[pixel] - SLACK]
        chosen = min(enough, key=lambda s: (len(s), -sum(depth[graph.names[i]] for i in s)))
        shares[chosen] = shares.get(chosen, 0.0) + 1 / y.shape[1]
    groups: list[set[int]] = [{i} for i in range(k)]
    for subset, share in shares.items():
        if share >= LEAST_SHARE:
            touched = [group for group in groups if group & set(subset)]
            groups = [group for group in groups if group not in touched]
            groups.append(set().union(*touched))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _explained(u: FloatArray, y: NDArray[np.floating]) -> FloatArray:
    """Share of each pixel's variance that concepts predict on the other half of the images."""
    half = len(u) // 2
    width = 0.35 * np.sqrt(u.shape[1])

    def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
        squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
        return np.asarray(np.exp(-np.maximum(squares, 0) / (2 * width**2)))

    mean = y[:half].mean(axis=0)
    gram = kernel(u[:half], u[:half]) + RIDGE * half / 100 * np.eye(half)
    predicted = kernel(u[half:], u[:half]) @ np.linalg.solve(gram, y[:half] - mean) + mean
    residual = ((y[half:] - predicted) ** 2).mean(axis=0)
    return np.asarray(1 - residual / np.maximum(y[half:].var(axis=0), 1e-12))
