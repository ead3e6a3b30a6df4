"""Learning of causal graphs from labels, by independence of exogenous noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from disentwine.causal.concepts import MIN_ROWS, checked_labels, enough_labels
from disentwine.causal.constraints import (
    NO_KNOWLEDGE,
    GraphConstraints,
    Knowledge,
    bits_of_columns,
    build_constraints,
)
from disentwine.causal.graph import Edge, Graph
from disentwine.causal.independence_score import Dag, IndependenceScore
from disentwine.causal.notears import discover_notears
from disentwine.causal.search import (
    LOCAL_STAGES,
    MAX_EXHAUSTIVE,
    GraphScores,
    all_scores,
    edge_confidence,
    local_scores,
    neighbours,
)
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError
from disentwine.progress import ProgressBar

MAX_ROWS = 10_000

MAX_ROWS_LOCAL = 2_000
"""For hill climbing, which fits thousands of regressions."""

MIN_WEIGHT = 1e-3
"""Weight of an edge whose cause explains nothing beyond the other causes; 0 means no edge."""

Discovery = Literal["independence", "least-squares"]


def learn_graph(
    dataset: Dataset,
    edges: Iterable[Edge] | None = None,
    knowledge: Knowledge = NO_KNOWLEDGE,
    discovery: Discovery = "independence",
) -> Graph:
    """The graph with the given edges, or a graph learnt from the training labels.

    Arguments:
        dataset: its training labels are used.
        edges: all (cause, effect) pairs, if the graph is known.
        knowledge: prior knowledge of the graph.
        discovery: "independence" by `discover`, "least-squares" by `discover_notears`.
    """
    if not isinstance(knowledge, Knowledge):
        raise UsageError(f"knowledge: write Knowledge(tiers=...), got {knowledge!r}")
    if discovery == "least-squares":
        if edges is not None or knowledge != NO_KNOWLEDGE:
            raise UsageError(
                "discovery: 'least-squares' cannot use edges or knowledge; remove them"
            )
        return discover_notears(_to_discover(dataset), dataset.names)
    if edges is None:
        return discover(_to_discover(dataset), dataset.names, **asdict(knowledge))
    if knowledge != NO_KNOWLEDGE:
        raise UsageError("edges: they already define the graph; give edges or knowledge")
    return Graph.from_edges(dataset.names, edges)


def _to_discover(dataset: Dataset) -> FloatArray:
    return enough_labels(dataset, to_learn="the graph", otherwise=", or give the graph as `edges`")


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
    """Learn the graph whose exogenous variables are least dependent (see `IndependenceScore`).

    Graphs of up to five nodes are searched exhaustively, larger ones by hill climbing. Effects may be
    nonlinear and may be determined by their causes; noise must be additive, except for binary labels.
    Edges that the data do not identify have a low confidence, such as edges between binary labels or of
    linear effects with Gaussian noise.

    The weight of an edge is the share of the effect's variance that the cause explains beyond the other
    causes.

    Arguments:
        labels: (n, k), one column per name; rows with NaN are left out.
        names: of the columns.
        required: edges (cause, effect) that the graph must have.
        forbidden: edges that it must not have.
        tiers: groups of names; no edge leads from a later group to an earlier one.
        known: the true graph, for which only weights and confidence are computed.
        bootstrap: number of resamples over which the confidence is averaged, with a search for each.
        seed: of landmarks, restarts and resamples.
        progress: show a progress bar; by default for long searches on a terminal.

    >>> rng = np.random.default_rng(0)
    >>> light = rng.uniform(-1, 1, 300)
    >>> shadow = np.exp(light) + 0.2 * rng.normal(size=300)
    >>> graph = discover(np.stack([shadow, light], axis=1), ("shadow", "light"))
    >>> graph, bool(graph.confidence[1, 0] > 0.8)
    (Graph(light -> shadow), True)
    """
    x = checked_labels(labels, names)
    node_names = Graph(names, np.zeros((len(names), len(names)))).names
    constraints = build_constraints(node_names, required=required, forbidden=forbidden, tiers=tiers)
    known_dag = None
    if known is not None:
        if (
            constraints.required.any()
            or not (constraints.allowed | np.eye(len(node_names), dtype=bool)).all()
        ):
            raise UsageError(
                "known: it already defines the graph; leave out required, forbidden and tiers"
            )
        known_dag = _parents(known, node_names)
    if bootstrap < 0 or seed < 0:
        raise UsageError("bootstrap and seed must not be negative")

    rng = np.random.default_rng(seed)
    k = len(node_names)
    rows = rng.permutation(len(x))[: MAX_ROWS if k <= MAX_EXHAUSTIVE else MAX_ROWS_LOCAL]
    x = x[rows]
    stages = 1 if k <= MAX_EXHAUSTIVE or known_dag is not None else LOCAL_STAGES
    show = False if progress is None and k <= MAX_EXHAUSTIVE and not bootstrap else progress
    bar = ProgressBar("causal graph", total=stages * (1 + bootstrap), show=show)
    # More BLAS threads are slower on small matrices.
    with bar, threadpool_limits(limits=1):

        def learn(table: FloatArray) -> tuple[IndependenceScore, Dag, FloatArray]:
            score = IndependenceScore(table, seed=seed)
            scores = _scores(score, constraints, known_dag, rng, bar.advance)
            best = known_dag or min(scores, key=scores.__getitem__)
            return score, best, edge_confidence(score, scores)

        score, best, confidence = learn(x)
        if bootstrap:
            confidence = np.mean([learn(_resampled(x, rng))[2] for _ in range(bootstrap)], axis=0)
    return Graph(node_names, _weights(score, best), np.clip(confidence, 0, 1))


def _scores(
    score: IndependenceScore,
    constraints: GraphConstraints,
    known_dag: Dag | None,
    rng: np.random.Generator,
    on_stage: Callable[[], None],
) -> GraphScores:
    if known_dag is None and score.k > MAX_EXHAUSTIVE:
        return local_scores(score, constraints, rng=rng, on_stage=on_stage)
    if known_dag is None:
        scores = all_scores(score, constraints)
    else:
        scores = {dag: score.score(dag) for dag in (known_dag, *neighbours(known_dag, constraints))}
    on_stage()
    return scores


def _resampled(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    # Duplicate rows would leak into leave-one-out residuals.
    rows = np.unique(rng.integers(len(x), size=len(x)))
    if len(rows) < MIN_ROWS or (np.ptp(x[rows], axis=0) == 0).any():
        return x
    return np.asarray(x[rng.permutation(rows)])


def _parents(known: Graph | nx.DiGraph, names: tuple[str, ...]) -> Dag:
    graph = known.to_networkx() if isinstance(known, Graph) else known
    # Its weights are ignored, as weights are computed from the labels.
    edges = graph.__class__(graph.edges())
    edges.add_nodes_from(graph)
    return bits_of_columns(Graph.from_networkx(edges, names).adjacency)


def _weights(score: IndependenceScore, dag: Dag) -> FloatArray:
    weights = np.zeros((score.k, score.k))
    for effect, parents in enumerate(dag):
        for cause in range(score.k):
            if parents >> cause & 1:
                without_cause = score.exogenous(effect, parents & ~(1 << cause)).share
                explained = without_cause - score.exogenous(effect, parents).share
                weights[cause, effect] = max(explained, MIN_WEIGHT)
    return weights
