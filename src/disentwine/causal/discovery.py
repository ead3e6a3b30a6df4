"""Learning of causal graphs from labels by independence of exogenous variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from disentwine.causal.constraints import GraphConstraints, bits_of_columns, limits
from disentwine.causal.graph import Edge, Graph
from disentwine.causal.independence_score import Dag, IndependenceScore
from disentwine.causal.search import (
    EXHAUSTIVE,
    LOCAL_STAGES,
    Scores,
    all_scores,
    edge_confidence,
    local_scores,
    neighbours,
)
from disentwine.core.types import FloatArray
from disentwine.errors import DataError, UsageError
from disentwine.progress import ProgressBar

FEWEST_ROWS = 30


def checked_labels(labels: ArrayLike, names: Sequence[str]) -> FloatArray:
    """The rows (n, k) with all labels, or an error that explains what is wrong with them.

    >>> checked_labels([[1.0, float("nan")]] + [[i, -i] for i in range(40)], ("a", "b")).shape
    (40, 2)
    """
    try:
        table = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"labels must be a table of numbers: {error}") from error
    if table.ndim != 2:
        raise UsageError(f"labels must be a table (n, k); got shape {table.shape}")
    if table.shape[1] != len(names):
        raise UsageError(f"labels has {table.shape[1]} columns and names has {len(names)}")
    if not len(names):
        raise UsageError("labels has no columns; a graph needs at least one")
    for name, column in zip(names, table.T, strict=True):
        if np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            raise DataError(
                f"labels: '{name}' is infinite in row {row}; correct it or leave it NaN"
            )
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < FEWEST_ROWS:
        raise DataError(
            f"labels: {len(complete)} of {len(table)} rows carry every label; "
            f"at least {FEWEST_ROWS} are needed"
        )
    for name, column in zip(names, complete.T, strict=True):
        if np.ptp(column) <= 1e-12 * np.abs(column).max():
            raise DataError(
                f"labels: '{name}' has one value only; leave it out, nothing can be learnt of it"
            )
    return complete


MOST_ROWS = 10_000

MOST_ROWS_LOCAL = 2_000
"""For more than five nodes, where thousands of regressions are made."""

SMALLEST_WEIGHT = 1e-3
"""Weight of an edge whose cause explains nothing beyond the other causes."""


def discover(
    labels: ArrayLike,
    names: Sequence[str],
    *,
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    tiers: Sequence[Sequence[str]] = (),
    known: Graph | nx.DiGraph | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    progress: bool | None = None,
) -> Graph:
    """Learn the graph whose exogenous variables are the least dependent (see `IndependenceScore`).

    All graphs of up to five nodes are compared; larger ones are searched by hill climbing. Effects may
    be nonlinear and may be determined by their causes; noise must be additive, except for binary
    labels. Edges that the data do not identify, as of linear effects with Gaussian noise or between
    binary labels, have a low confidence.

    The weight of an edge is the decrease of the explained share of the effect's variance without the
    cause.

    Arguments:
        labels: (n, k), a column a name; rows with NaN are left out.
        names: of the columns.
        required: edges (cause, effect) that the graph must have.
        forbidden: edges that it must not have.
        tiers: groups of names; no edge leads from a later group to an earlier one.
        known: the whole graph; then only weights and confidence are computed.
        bootstrap: number of resamples over which the confidence is averaged, each searched again.
        seed: of landmarks, restarts and resamples.
        progress: show a bar; by default on a terminal, for long searches.

    >>> rng = np.random.default_rng(0)
    >>> light = rng.uniform(-1, 1, 300)
    >>> shadow = np.exp(light) + 0.2 * rng.normal(size=300)
    >>> graph = discover(np.stack([shadow, light], axis=1), ("shadow", "light"))
    >>> graph, bool(graph.confidence[1, 0] > 0.8)
    (Graph(light -> shadow), True)
    """
    x = checked_labels(labels, names)
    named = Graph(names, np.zeros((len(names), len(names)))).names
    bounds = limits(named, required=required, forbidden=forbidden, tiers=tiers)
    given = None
    if known is not None:
        if bounds.required.any() or not (bounds.allowed | np.eye(len(named), dtype=bool)).all():
            raise UsageError(
                "known: a whole graph leaves nothing to require or forbid; give either"
            )
        given = _parents(known, named)
    if bootstrap < 0 or seed < 0:
        raise UsageError("bootstrap and seed must not be negative")

    rng = np.random.default_rng(seed)
    k = len(named)
    rows = rng.permutation(len(x))[: MOST_ROWS if k <= EXHAUSTIVE else MOST_ROWS_LOCAL]
    x = x[rows]
    stages = 1 if k <= EXHAUSTIVE or given is not None else LOCAL_STAGES
    show = False if progress is None and k <= EXHAUSTIVE and not bootstrap else progress
    bar = ProgressBar("causal graph", total=stages * (1 + bootstrap), show=show)
    # On small matrices further threads of the linear algebra are slower.
    with bar, threadpool_limits(limits=1):

        def learn(table: FloatArray) -> tuple[IndependenceScore, Dag, FloatArray]:
            terms = IndependenceScore(table, seed=seed)
            scores = _scores(terms, bounds, given, rng, bar.advance)
            chosen = given or min(scores, key=scores.__getitem__)
            return terms, chosen, edge_confidence(terms, scores)

        terms, chosen, confidence = learn(x)
        if bootstrap:
            confidence = np.mean([learn(_resampled(x, rng))[2] for _ in range(bootstrap)], axis=0)
    return Graph(named, _weights(terms, chosen), np.clip(confidence, 0, 1))


def _scores(
    terms: IndependenceScore,
    bounds: GraphConstraints,
    given: Dag | None,
    rng: np.random.Generator,
    on_stage: Callable[[], None],
) -> Scores:
    if given is None and terms.k > EXHAUSTIVE:
        return local_scores(terms, bounds, rng=rng, on_stage=on_stage)
    if given is None:
        scores = all_scores(terms, bounds)
    else:
        scores = {dag: terms.score(dag) for dag in (given, *neighbours(given, bounds))}
    on_stage()
    return scores


def _resampled(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    # Each row once: a duplicate would leak into leave-one-out residuals.
    rows = np.unique(rng.integers(len(x), size=len(x)))
    if len(rows) < FEWEST_ROWS or (np.ptp(x[rows], axis=0) == 0).any():
        return x
    return np.asarray(x[rng.permutation(rows)])


def _parents(known: Graph | nx.DiGraph, names: tuple[str, ...]) -> Dag:
    graph = known.to_networkx() if isinstance(known, Graph) else known
    # Its weights are ignored: they are computed from the labels.
    edges = graph.__class__(graph.edges())
    edges.add_nodes_from(graph)
    return bits_of_columns(Graph.from_networkx(edges, names).adjacency)


def _weights(terms: IndependenceScore, dag: Dag) -> FloatArray:
    weights = np.zeros((terms.k, terms.k))
    for effect, parents in enumerate(dag):
        for cause in range(terms.k):
            if parents >> cause & 1:
                others = terms.exogenous(effect, parents & ~(1 << cause)).share
                lost = others - terms.exogenous(effect, parents).share
                weights[cause, effect] = max(lost, SMALLEST_WEIGHT)
    return weights
