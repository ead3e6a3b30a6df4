"""What a data set's labels decide about a model: concepts, their units, and what causes what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from disentwine.causal.constraints import NOTHING, Knowledge
from disentwine.causal.discovery import FEWEST_ROWS, checked_labels, discover
from disentwine.causal.graph import Edge, Graph
from disentwine.causal.notears import discover_notears
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray
from disentwine.errors import DataError, UsageError

COARSEST = 1e5
"""Deviations that labels may lie away from zero: a float32 has seven digits."""

MOST_LEVELS = 8
"""Values of an effect that count as few: a learnt density of noise could put a peak on each of them."""

Discovery = Literal["independence", "least-squares"]


def label_arguments(dataset: Dataset, *, needed_by: str) -> dict[str, Any]:
    """Image shape, and names, means and standard deviations of the labels, as constructors take them.

    Arguments:
        dataset: its training labels count; some may be missing.
        needed_by: who learns from them, for the error where there are none.
    """
    labels = dataset.factors[dataset.split["train"]]
    if not np.isfinite(labels).any():
        raise DataError(f"{needed_by} learns concepts from labels: give the data set some")
    for name, column in zip(dataset.names, labels.T, strict=True):
        if len(np.unique(column[np.isfinite(column)])) < 2:
            raise DataError(
                f"{needed_by}: '{name}' has fewer than two different values among the training "
                f"labels; label more images, or leave it out"
            )
        centre, spread = np.nanmean(column), np.nanstd(column)
        if abs(centre) > COARSEST * spread:
            raise DataError(
                f"{needed_by}: '{name}' varies by {spread:.3g} around {centre:.6g}, which numbers of "
                f"single precision cannot tell apart; subtract {centre:.6g} from it"
            )
    return {
        "image_shape": dataset.image_shape,
        "concept_names": dataset.names,
        "label_mean": tuple(np.nanmean(labels, axis=0).tolist()),
        "label_scale": tuple(np.nanstd(labels, axis=0).tolist()),
    }


def complete_labels(dataset: Dataset) -> FloatArray:
    """The rows (n, k) of the training labels in which none is missing."""
    labels = dataset.factors[dataset.split["train"]]
    return labels[np.isfinite(labels).all(axis=1)]


def effect_levels(dataset: Dataset, graph: Graph) -> tuple[tuple[float, ...], ...]:
    """For each concept its values, where it is an effect that has few or is a category; none elsewhere.

    Arguments:
        dataset: its training labels count.
        graph: what is an effect.
    """
    values = [tuple(np.unique(column).tolist()) for column in complete_labels(dataset).T]
    return tuple(
        found
        if graph.parents(factor.name)
        and (len(found) <= MOST_LEVELS or factor.kind == "categorical")
        else ()
        for factor, found in zip(dataset.spec, values, strict=True)
    )


def enough_labels(dataset: Dataset, *, to_learn: str, otherwise: str = "") -> FloatArray:
    """The same rows, or an error where they are too few.

    Arguments:
        dataset: its training labels count.
        to_learn: what they are needed for.
        otherwise: what can be done beside labelling more images.
    """
    complete, rows = complete_labels(dataset), len(dataset.split["train"])
    if len(complete) < FEWEST_ROWS:
        raise DataError(
            f"labels: {len(complete)} of {rows} training images carry every label, and at least "
            f"{FEWEST_ROWS} are needed to learn {to_learn}; label more of them completely{otherwise}"
        )
    return checked_labels(complete, dataset.names)


def learn_graph(
    dataset: Dataset,
    edges: Iterable[Edge] | None = None,
    knowledge: Knowledge = NOTHING,
    discovery: Discovery = "independence",
) -> Graph:
    """The graph of these edges where all are known, else the one that training labels tell.

    Arguments:
        dataset: its training labels count.
        edges: all (cause, effect) pairs.
        knowledge: what else is known beforehand.
        discovery: "independence" by `discover`, "least-squares" by `discover_notears`.
    """
    if not isinstance(knowledge, Knowledge):
        raise UsageError(f"knowledge: write Knowledge(tiers=...), got {knowledge!r}")
    if discovery == "least-squares":
        if edges is not None or knowledge != NOTHING:
            raise UsageError("discovery: least squares take no edges or knowledge; give either")
        return discover_notears(_to_discover(dataset), dataset.names)
    if edges is None:
        return discover(_to_discover(dataset), dataset.names, **asdict(knowledge))
    if knowledge != NOTHING:
        raise UsageError("edges: a whole graph leaves nothing to know; give edges or knowledge")
    return Graph.from_edges(dataset.names, edges)


def _to_discover(dataset: Dataset) -> FloatArray:
    return enough_labels(dataset, to_learn="the graph", otherwise=", or give the graph as `edges`")
