"""Graphs: acyclic, immutable, and the same after every round trip."""

import json

import networkx as nx
import numpy as np
import pytest

from disentwine.causal import Graph
from disentwine.errors import UsageError

NAMES = ("angle", "light", "length", "position")
EDGES = (("angle", "length"), ("angle", "position"), ("light", "length"), ("light", "position"))


def test_relations_of_nodes() -> None:
    graph = Graph.from_edges(("c", "b", "a", "lone"), [("a", "b"), ("b", "c")])
    assert graph.edges == (("b", "c"), ("a", "b"))
    assert graph.order == ("a", "b", "c", "lone")
    assert graph.parents("c") == ("b",)
    assert graph.descendants("a") == ("b", "c")
    assert graph.descendants("lone") == ()
    assert graph.adjacency[2, 1]
    assert graph.adjacency.sum() == 2
    assert repr(graph) == "Graph(b -> c, a -> b, lone)"


def test_a_cycle_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="cycle: a -> b -> c -> a"):
        Graph.from_edges(("a", "b", "c", "d"), [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")])
    with pytest.raises(UsageError, match="cycle: a -> a"):
        Graph(("a", "b"), [[1, 0], [0, 0]])


def test_nothing_can_be_changed() -> None:
    graph = Graph(("a", "b"), [[0, 1], [0, 0]], [[0, 0.9], [0.1, 0]])
    for array in (graph.weights, graph.adjacency, graph.confidence):
        with pytest.raises(ValueError, match="read-only"):
            array[1, 0] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        graph.weights = np.zeros((2, 2))  # type: ignore[misc]
    weights = np.array([[0.0, 1.0], [0.0, 0.0]])
    held = Graph(("a", "b"), weights)
    weights[1, 0] = 1
    assert held.edges == (("a", "b"),)


@pytest.mark.parametrize("confidence", [None, np.full((4, 4), 0.25)])
def test_json_round_trip(confidence: np.ndarray | None) -> None:
    weights = Graph.from_edges(NAMES, EDGES).weights * -0.3
    graph = Graph(NAMES, weights, confidence)
    assert Graph.from_json(json.loads(json.dumps(graph.to_json()))) == graph
    assert hash(Graph.from_json(graph.to_json())) == hash(graph)


def test_networkx_round_trip_keeps_order_weights_and_confidence_of_edges() -> None:
    confidence = np.where(Graph.from_edges(NAMES, EDGES).adjacency, 0.75, 0)
    graph = Graph(NAMES, 2 * Graph.from_edges(NAMES, EDGES).weights, confidence)
    assert Graph.from_networkx(graph.to_networkx()) == graph
    turned = Graph.from_networkx(graph.to_networkx(), NAMES[::-1])
    assert turned.names == NAMES[::-1]
    assert set(turned.edges) == set(graph.edges)


def test_a_plain_networkx_graph_gets_weights_of_one() -> None:
    graph = Graph.from_networkx(nx.DiGraph([("a", "b")]))
    assert graph == Graph.from_edges(("a", "b"), [("a", "b")])
    assert graph != Graph.from_edges(("a", "b"), [("b", "a")])
    assert graph != Graph.from_edges(("a", "c"), [("a", "c")])


def weighted(weight: float) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", weight=weight)
    return graph


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph(("a", "a"), np.zeros((2, 2))), "'a' is given twice"),
        (lambda: Graph("ab", np.zeros((2, 2))), "list of strings"),
        (lambda: Graph(("a", "b"), np.zeros((2, 3))), r"\(2, 2\)"),
        (lambda: Graph(("a",), [["x"]]), "numbers"),
        (lambda: Graph(("a",), [[np.nan]]), "NaN"),
        (lambda: Graph(("a",), [[0]], [[2]]), "0 to 1"),
        (lambda: Graph.from_edges(("angle",), [("angel", "angle")]), "Did you mean 'angle'"),
        (lambda: Graph.from_edges(("a", "b"), ["ab"]), "not an edge"),
        (lambda: Graph.from_json({"names": ["a"]}), "'weights'"),
        (lambda: Graph.from_networkx(nx.DiGraph([("a", "b")]), ("a", "c")), "'b', 'c'"),
        (lambda: Graph.from_edges(("a",), []).parents("b"), "no factor 'b'"),
        (lambda: Graph.from_networkx(weighted(0)), "a -> b has weight 0"),
    ],
)
def test_what_is_wrong_is_named(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]
