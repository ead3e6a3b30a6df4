"""Immutable directed acyclic graph over named concepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.dataset import column_index
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError

Edge = tuple[str, str]
"""A cause and its effect."""


class Graph:
    """Directed acyclic graph; edges have a weight and, if learnt, a confidence.

    Arguments:
        names: of the nodes.
        weights: (k, k) strength of the edge from row (cause) to column (effect), 0 for no edge.
        confidence: (k, k) from 0 to 1, also of edges that are not in the graph.

    >>> graph = Graph.from_edges(("ball", "height", "flow"), [("ball", "height"), ("height", "flow")])
    >>> graph
    Graph(ball -> height, height -> flow)
    >>> graph.parents("flow"), graph.descendants("ball"), graph.order
    (('height',), ('height', 'flow'), ('ball', 'height', 'flow'))
    """

    def __init__(
        self, names: Sequence[str], weights: ArrayLike, confidence: ArrayLike | None = None
    ) -> None:
        self._names = _checked_names(names)
        self._weights = _frozen(weights, len(self._names), "weights")
        self._confidence = None
        if confidence is not None:
            self._confidence = _frozen(confidence, len(self._names), "confidence")
            if self._confidence.min(initial=0) < 0 or self._confidence.max(initial=0) > 1:
                raise UsageError("confidence must be from 0 to 1")
        if cycle := find_cycle(self.adjacency):
            path = " -> ".join(self._names[i] for i in cycle)
            raise UsageError(f"the graph has a cycle: {path}; remove one of its edges")

    @classmethod
    def from_edges(cls, names: Sequence[str], edges: Iterable[Edge]) -> Graph:
        """A graph from edges, of weight 1."""
        return cls(names, edge_matrix(_checked_names(names), edges, "edges").astype(np.float64))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph, names: Sequence[str] | None = None) -> Graph:
        """A graph from networkx, with the edge attributes "weight" (1 by default) and "confidence".

        Arguments:
            graph: a graph whose nodes are strings.
            names: the order of the nodes, by default that of `graph`.
        """
        nodes = _checked_names(list(graph.nodes) if names is None else names)
        if set(nodes) != set(graph.nodes):
            unmatched = sorted(set(nodes) ^ set(graph.nodes))
            raise UsageError(
                f"names and the graph's nodes differ in {', '.join(map(repr, unmatched))}"
            )
        for cause, effect, weight in graph.edges(data="weight", default=1):
            if weight == 0:
                raise UsageError(
                    f"{cause} -> {effect} has weight 0, which means no edge; remove the edge or its weight"
                )
        weights = nx.to_numpy_array(graph, nodelist=nodes, weight="weight", nonedge=0.0)
        confidence = None
        if graph.number_of_edges() and nx.get_edge_attributes(graph, "confidence"):
            confidence = nx.to_numpy_array(graph, nodelist=nodes, weight="confidence", nonedge=0.0)
        return cls(nodes, weights, confidence)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Graph:
        """The graph from the output of `to_json`."""
        missing = {"names", "weights"} - set(fields)
        if missing:
            raise UsageError(f"graph: there is no field '{min(missing)}'")
        return cls(fields["names"], fields["weights"], fields.get("confidence"))

    def to_json(self) -> dict[str, Any]:
        """Lists of "names", "weights" and "confidence" (None if unknown)."""
        confidence = None if self._confidence is None else self._confidence.tolist()
        return {
            "names": list(self._names),
            "weights": self._weights.tolist(),
            "confidence": confidence,
        }

    def to_networkx(self) -> nx.DiGraph:
        """A networkx graph with "weight" and "confidence" as attributes of its edges."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self._names)
        for cause, effect in self.edges:
            i, j = self._names.index(cause), self._names.index(effect)
            graph.add_edge(cause, effect, weight=float(self._weights[i, j]))
            if self._confidence is not None:
                graph.edges[cause, effect]["confidence"] = float(self._confidence[i, j])
        return graph

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in the order of the matrices' rows."""
        return self._names

    @property
    def weights(self) -> FloatArray:
        """(k, k) weights [cause, effect]; read only."""
        return self._weights

    @property
    def confidence(self) -> FloatArray | None:
        """(k, k) confidence [cause, effect], read only; None if unknown."""
        return self._confidence

    @cached_property
    def adjacency(self) -> NDArray[np.bool_]:
        """(k, k) True where row causes column; read only."""
        found: NDArray[np.bool_] = self._weights != 0
        found.setflags(write=False)
        return found

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every (cause, effect)."""
        return tuple((self._names[i], self._names[j]) for i, j in np.argwhere(self.adjacency))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes in topological order, ties in the order of `names`."""
        rank = self._names.index
        return tuple(nx.lexicographical_topological_sort(self.to_networkx(), key=rank))

    def parents(self, name: str) -> tuple[str, ...]:
        """The direct causes of a node."""
        causes = self.adjacency[:, column_index(self._names, name)]
        return tuple(self._names[i] for i in np.flatnonzero(causes))

    def descendants(self, name: str) -> tuple[str, ...]:
        """All effects of a node, direct and indirect, causes first."""
        column_index(self._names, name)
        below = nx.descendants(self.to_networkx(), name)
        return tuple(node for node in self.order if node in below)

    def affected_by(self, interventions: Iterable[str]) -> tuple[str, ...]:
        """Descendants of the intervened nodes that are not intervened on themselves, causes first.

        >>> chain = Graph.from_edges(("a", "b", "c"), [("a", "b"), ("b", "c")])
        >>> chain.affected_by(["a"]), chain.affected_by(["a", "b"])
        (('b', 'c'), ('c',))
        """
        intervened = [self._names.index(name) for name in interventions if name in self._names]
        changed = np.zeros(len(self._names), dtype=bool)
        changed[intervened] = True
        order = [self._names.index(name) for name in self.order]
        for node in order:
            changed[node] |= (self.adjacency[:, node] & changed).any()
        changed[intervened] = False
        return tuple(self._names[node] for node in order if changed[node])

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Lets constructors accept a graph as JSON, as checkpoints store it."""
        from pydantic_core import core_schema

        def parse(value: Any) -> Graph:
            return value if isinstance(value, Graph) else cls.from_json(value)

        return core_schema.no_info_plain_validator_function(parse)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self._names, self._weights.tobytes()))

    def __repr__(self) -> str:
        linked = {name for edge in self.edges for name in edge}
        isolated = [name for name in self._names if name not in linked]
        return f"Graph({', '.join([f'{a} -> {b}' for a, b in self.edges] + isolated)})"


def edge_matrix(names: tuple[str, ...], edges: Iterable[Edge], what: str) -> NDArray[np.bool_]:
    """(k, k) True at every edge; an invalid edge raises an error.

    >>> edge_matrix(("a", "b"), [("b", "a")], "required")
    array([[False, False],
           [ True, False]])
    """
    matrix = np.zeros((len(names), len(names)), dtype=bool)
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise UsageError(f"{what}: {edge!r} is not an edge; write (cause, effect)")
        cause, effect = (column_index(names, end) for end in edge)
        if cause == effect:
            raise UsageError(f"{what}: '{edge[0]}' cannot cause itself")
        matrix[cause, effect] = True
    return matrix


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names must be a list of strings, got {names!r}")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise UsageError(f"names: '{twice[0]}' is given twice")
    return tuple(names)


def _frozen(values: ArrayLike, k: int, what: str) -> FloatArray:
    try:
        matrix: FloatArray = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} must be a table of numbers: {error}") from error
    if k == 0:
        matrix = matrix.reshape(0, 0)
    if matrix.shape != (k, k):
        raise UsageError(
            f"{what} must be of shape ({k}, {k}), one row per name; got {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise UsageError(f"{what} holds NaN or infinity")
    matrix.setflags(write=False)
    return matrix


def find_cycle(adjacency: NDArray[np.bool_]) -> list[int]:
    """The nodes along a cycle, the first one repeated at the end; empty for an acyclic graph.

    >>> find_cycle(np.array([[False, True], [True, False]])), find_cycle(np.zeros((2, 2), bool))
    ([0, 1, 0], [])
    """
    try:
        cycle = nx.find_cycle(nx.from_numpy_array(adjacency, create_using=nx.DiGraph))
    except nx.NetworkXNoCycle:
        return []
    return [cause for cause, _ in cycle] + [cycle[0][0]]
