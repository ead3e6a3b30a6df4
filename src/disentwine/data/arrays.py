"""Data set from arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from disentwine.core.dataset import Dataset, column_index, random_split
from disentwine.core.types import FloatArray, IndexArray, Kind, UInt8Array
from disentwine.data.folder.columns import Problems, number_column
from disentwine.data.simulation import no_edges
from disentwine.errors import UsageError

MIN_IMAGES = 10


class Arrays(Dataset):
    """Images and factors given as arrays.

    Arguments:
        images: (n, height, width, 1 or 3) `uint8`.
        factors: (n, k) numbers; NaN is a missing label.
        names: a name for each column of `factors`.
        kinds: the kinds of factors for which the inferred kind is wrong.
        seed: of the split.
        test: fraction of test images.
        validation: fraction of validation images, for early stopping.
        allow_missing: accept NaN as a missing label.
        edges: (cause, effect) pairs of the true graph, if known.

    >>> images = np.zeros((10, 8, 8, 1), np.uint8)
    >>> Arrays(images=images, factors=np.arange(10.0)[:, None], names=["size"])
    Arrays(10 images of 8x8x1; size)
    """

    about = "your own images and factors, as arrays in memory"

    def __init__(
        self,
        *,
        images: UInt8Array,
        factors: ArrayLike | None = None,
        names: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
        seed: int = 0,
        test: float = 0.2,
        validation: float = 0.1,
        allow_missing: bool = False,
        edges: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.kinds = dict(kinds or {})
        self.seed, self.test, self.validation = seed, test, validation
        self.allow_missing, self.edges = allow_missing, edges
        self.images = checked_images(images)
        table = _checked_factors(factors, len(self.images))
        names = tuple(names) or tuple(f"factor_{i}" for i in range(table.shape[1]))
        if len(names) != table.shape[1] or len(set(names)) != len(names):
            raise UsageError(
                f"names: {len(set(names))} different names for {table.shape[1]} columns of factors"
            )
        for name in self.kinds:
            column_index(names, name)
            if self.kinds[name] not in get_args(Kind):
                raise UsageError(
                    f"kinds: '{name}' is {self.kinds[name]!r}; choose from {', '.join(get_args(Kind))}"
                )
        problems = Problems("the arrays")
        check_enough(len(self.images), problems)
        columns = [
            number_column(
                name,
                table[:, i],
                where=lambda row: f"row {row}",
                problems=problems,
                allow_missing=allow_missing,
                kind=self.kinds.get(name),
            )
            for i, name in enumerate(names)
        ]
        problems.raise_any()
        self.spec = tuple(factor for factor, _ in columns)
        self.factors = np.stack([values for _, values in columns], axis=1) if columns else table
        self.graph = graph_from(edges, names)
        self.split = split_by_share(len(self.images), test=test, validation=validation, seed=seed)


def checked_images(images: ArrayLike) -> UInt8Array:
    """Validate images; errors say how to convert them."""
    array = np.asarray(images)
    if array.ndim == 3:
        raise UsageError(f"images: {array.shape} lacks the channels; pass images[..., None]")
    if array.ndim != 4:
        raise UsageError(f"images: {array.shape} is not (n, height, width, channels)")
    if array.shape[3] not in (1, 3):
        remedy = "; pass images.transpose(0, 2, 3, 1)" if array.shape[1] in (1, 3) else ""
        raise UsageError(f"images: {array.shape} is not (n, height, width, 1 or 3){remedy}")
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
        unit = "pass (images * 255).round().astype('uint8')"
        remedy = unit if low >= 0 and high <= 1 else "scale them to 0..255 and cast to uint8"
        raise UsageError(f"images: {array.dtype} from {low:g} to {high:g}, not uint8; {remedy}")
    raise UsageError(
        f"images: {array.dtype}, not uint8; cast images of 0..255 with astype('uint8')"
    )


def _checked_factors(factors: ArrayLike | None, n: int) -> FloatArray:
    if factors is None:
        return np.empty((n, 0))
    try:
        table = np.asarray(factors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "factors: not a table of numbers; give categories as numbers, and their kind in kinds"
        ) from error
    if table.ndim != 2 or len(table) != n:
        raise UsageError(f"factors: {table.shape} is not (n, k) with a row for each of {n} images")
    return table


def check_enough(n: int, problems: Problems) -> None:
    """Add a problem if there are too few images to split into train, validation and test."""
    if n < MIN_IMAGES:
        problems.add(f"images: only {n}; at least {MIN_IMAGES} are needed for training and testing")


def split_by_share(n: int, *, test: float, validation: float, seed: int) -> dict[str, IndexArray]:
    """Split `range(n)` at random by fractions.

    >>> split = split_by_share(10, test=0.2, validation=0.1, seed=0)
    >>> {name: len(part) for name, part in split.items()}
    {'train': 7, 'validation': 1, 'test': 2}
    """
    if not (test >= 0 and validation >= 0 and test + validation < 1):
        raise UsageError(
            f"test={test}, validation={validation}: give fractions of at least 0 that leave images "
            "for training"
        )
    counts = {"test": round(n * test), "validation": round(n * validation)}
    if sum(counts.values()) >= n > 0:
        raise UsageError(
            f"test={test}, validation={validation}: none of {n} images is left for training; give "
            "smaller fractions"
        )
    return random_split(n, seed=seed, **counts)


def graph_from(edges: Sequence[tuple[str, str]], names: tuple[str, ...]) -> nx.DiGraph | None:
    """The causal graph with these edges over all names; None without edges.

    >>> sorted(graph_from([("light", "shadow")], ("light", "shadow", "wind")).nodes)
    ['light', 'shadow', 'wind']
    """
    if not edges:
        return None
    for edge in edges:
        if len(edge) != 2:
            raise UsageError(f"edges: {edge} is not a pair (cause, effect)")
        for name in edge:
            column_index(names, name)
    graph = no_edges(names)
    graph.add_edges_from(map(tuple, edges))
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [cause for cause, _ in nx.find_cycle(graph)]
        raise UsageError(f"edges: a cycle {' -> '.join([*cycle, cycle[0]])}; remove one edge")
    return graph
