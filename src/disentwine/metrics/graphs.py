"""Distance between a learnt graph and the true one."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.errors import UsageError

GraphLike = Any
"""An adjacency matrix (cause, effect), zero where there is no edge, a `networkx.DiGraph`, or a graph
that converts to one, such as a model's."""


def shd(learnt: GraphLike, true: GraphLike) -> Score:
    """Structural Hamming distance: edges to add, remove or reverse (once each).

    Reference: The max-min hill-climbing Bayesian network structure learning algorithm,
    I. Tsamardinos, L. Brown and C. Aliferis, 2006, section 7.1.

    Arguments:
        learnt: the graph to evaluate.
        true: the graph as it is, over the same nodes in the same order (or of the same names).

    >>> shd([[0, 0], [1, 0]], [[0, 1], [0, 0]]).value
    1.0
    """
    a, b = _pair(learnt, true)
    differs = (a != b) | (a != b).T
    about = {"about": "edges of the graph to add, remove or reverse"}
    return Score("shd", float(np.triu(differs).sum()), n=len(a), details=about)


def edge_scores(learnt: GraphLike, true: GraphLike) -> Score:
    """The share of true edges found; other errors are details.

    Details: `true_positive_rate` (the value; 1 when there is no edge to find),
    `false_discovery_rate` (learnt edges that are not true, including reversed ones), and the numbers
    `reversed`, `extra` and `missing`.

    >>> edge_scores([[0, 0], [1, 0]], [[0, 1], [0, 0]]).details["reversed"]
    1
    """
    a, b = _pair(learnt, true)
    found, turned = a & b, a & b.T & ~b
    rate = float(found.sum() / b.sum()) if b.any() else 1.0
    details = {
        "true_positive_rate": rate,
        "false_discovery_rate": float(1 - found.sum() / a.sum()) if a.any() else 0.0,
        "reversed": int(turned.sum()),
        "extra": int((a & ~b & ~b.T).sum()),
        "missing": int((b & ~a & ~a.T).sum()),
    }
    return Score("edge-scores", rate, n=len(a), details=details)


def _pair(learnt: GraphLike, true: GraphLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    learnt, true = (g.to_networkx() if hasattr(g, "to_networkx") else g for g in (learnt, true))
    named = [isinstance(graph, nx.DiGraph) for graph in (learnt, true)]
    if any(named) and not all(named):
        raise UsageError(
            "one graph has names and the other is a matrix, whose order of nodes is unknown; give "
            "both with names, as in Graph(names, matrix), or both as matrices"
        )
    names = sorted(true.nodes) if all(named) else None
    a, b = _adjacency(learnt, "learnt", names), _adjacency(true, "true", names)
    if a.shape != b.shape:
        raise UsageError(f"learnt has {len(a)} nodes and true has {len(b)}; give the same nodes")
    return a, b


def _adjacency(graph: GraphLike, name: str, names: list[Any] | None) -> NDArray[np.bool_]:
    if isinstance(graph, nx.DiGraph):
        nodes = names if names is not None else sorted(graph.nodes)
        if set(graph.nodes) != set(nodes):
            raise UsageError(f"{name} has nodes {sorted(graph.nodes)}, not {nodes}")
        return np.asarray(nx.to_numpy_array(graph, nodelist=nodes, weight=None), dtype=bool)
    return _matrix(graph, name)


def _matrix(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise UsageError(f"{name} must be a square adjacency matrix; got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise UsageError(f"{name} holds NaN or infinity")
    return np.asarray(matrix != 0)
