"""Learning graphs from labels: exact where it can be, honest where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from disentwine.causal import Graph, discover, independence_score
from disentwine.causal.constraints import build_constraints
from disentwine.causal.independence_score import (
    IndependenceScore,
    information,
    leave_one_out_residuals,
    rank_basis,
)
from disentwine.causal.search import LOCAL_STAGES, all_scores, local_scores
from disentwine.data.synthetic.flow import GRAPH as FLOW
from disentwine.data.synthetic.flow import flow
from disentwine.data.synthetic.pendulum import GRAPH as PENDULUM
from disentwine.data.synthetic.pendulum import shadow_length, shadow_position
from disentwine.errors import DataError, DisentwineError, UsageError

pytestmark = pytest.mark.usefixtures("one_thread")

CAUSES = np.random.default_rng(0).uniform(-1, 1, 200)


@pytest.fixture
def one_thread() -> Iterator[None]:
    with threadpool_limits(limits=1):
        yield


@cache
def labels(name: str, seed: int, noise: float, n: int = 500) -> tuple[Any, tuple[str, ...], Any]:
    """Labels drawn from a data set's mechanisms, without its images."""
    rng = np.random.default_rng(seed)
    if name == "pendulum":
        angles = 0.9 * rng.integers(-40, 44, n), 0.9 * rng.integers(60, 148, n) + 0.01
        table = dict(zip(("pendulum_angle", "light_angle"), angles, strict=True))
        table |= {"shadow_length": shadow_length(table), "shadow_position": shadow_position(table)}
        truth = PENDULUM
    else:
        table = {"ball_size": rng.integers(5, 35, n) / 30, "hole": rng.integers(6, 15, n) / 3}
        table["water_height"] = table["ball_size"] ** 3 + rng.integers(10, 40, n) / 10
        table["flow"] = flow(table)
        truth = FLOW
    x = np.stack(list(table.values()), axis=1)
    return x + noise * x.std(axis=0) * rng.normal(size=x.shape), tuple(table), truth


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("name", ["pendulum", "flow"])
@pytest.mark.parametrize("seed", range(3))
def test_pendulum_and_flow_are_learnt_exactly(name: str, seed: int, noise: float) -> None:
    x, names, truth = labels(name, seed, noise)
    graph = discover(x, names, seed=seed)
    assert set(graph.edges) == set(truth.edges)
    assert graph.confidence is not None
    assert graph.confidence[graph.adjacency].mean() > 0.7
    assert ((graph.weights > 0) == graph.adjacency).all()


def test_residuals_are_those_of_fits_without_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closed form against a ridge that is really fitted anew without each row."""
    monkeypatch.setattr(independence_score, "RIDGES", (0.01,))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40, 1))
    found = leave_one_out_residuals(x, y - y.mean(), rng=np.random.default_rng(1))
    phi = independence_score._features(x, np.random.default_rng(1))
    design, ridge = np.hstack([np.ones((40, 1)), phi]), 40 * 0.01 * np.eye(1 + phi.shape[1])
    ridge[0, 0] = 0
    for row in range(40):
        others = np.arange(40) != row
        a = design[others]
        beta = np.linalg.solve(a.T @ a + ridge, a.T @ y[others])
        assert found[row, 0] == pytest.approx((y[row] - design[row] @ beta)[0], abs=1e-6)


def test_the_same_seed_gives_the_same_graph_and_unlabelled_rows_are_left_out() -> None:
    x, names, _ = labels("flow", 0, 0.1)
    graph = discover(x, names, seed=3)
    gaps = np.full((20, 4), np.nan)
    gaps[:, 0] = 1
    assert discover(np.vstack([x, gaps]), names, seed=3) == graph
    assert discover(x, names, seed=4).edges == graph.edges


def test_units_do_not_matter() -> None:
    x, names, truth = labels("pendulum", 1, 0.1)
    assert set(discover(1e5 * x - 7e6, names).edges) == set(truth.edges)


def linear_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=(n, 3))
    for j in (1, 2):
        x[:, j] += x[:, j - 1]
    return x


def binary_chain(n: int, rng: np.random.Generator) -> np.ndarray:
    x = np.zeros((n, 3))
    x[:, 0] = rng.random(n) < 0.4
    for j in (1, 2):
        x[:, j] = rng.random(n) < np.where(x[:, j - 1] == 1, 0.85, 0.25)
    return x


@pytest.mark.parametrize("chain", [linear_chain, binary_chain])
def test_directions_that_data_cannot_tell_are_not_claimed(chain: Any) -> None:
    """Edges are found between the right pairs, but neither direction is sure."""
    sure = []
    for seed in range(8):
        graph = discover(chain(1500, np.random.default_rng(seed)), ("a", "b", "c"), seed=seed)
        assert {frozenset(edge) for edge in graph.edges} == {frozenset("ab"), frozenset("bc")}
        sure += list(graph.confidence[graph.adjacency])  # type: ignore[index]
    assert np.mean(np.array(sure) < 0.8) >= 0.8
    assert np.mean(sure) < 0.75


def test_noise_that_is_not_additive_is_not_believed() -> None:
    rng = np.random.default_rng(0)
    cause, noise = rng.normal(size=(2, 3000))
    x = np.stack([cause, cause / 2 + np.exp(cause / 2) * noise / 2], axis=1)
    graph = discover(x, ("cause", "effect"))
    assert graph.confidence is not None
    assert graph.confidence.max() < 0.8


def test_bootstrap_averages_over_resamples() -> None:
    x, names, truth = labels("flow", 0, 0.1)
    graph = discover(x, names, bootstrap=4)
    assert set(graph.edges) == set(truth.edges)
    assert graph.confidence is not None
    assert graph.confidence[graph.adjacency].min() > 0.6
    assert graph.confidence.max() <= 1
    assert not np.array_equal(graph.confidence, discover(x, names).confidence)


def test_prior_knowledge_is_kept() -> None:
    x, names, _ = labels("pendulum", 0, 0.1)
    graph = discover(
        x,
        names,
        required=[("shadow_length", "shadow_position")],
        forbidden=[("light_angle", "shadow_length")],
    )
    assert ("shadow_length", "shadow_position") in graph.edges
    assert ("light_angle", "shadow_length") not in graph.edges
    assert graph.confidence is not None
    assert graph.confidence[2, 3] == 1
    assert graph.confidence[1, 2] == 0
    wrong_way = [["shadow_length", "shadow_position"], ["pendulum_angle"]]
    graph = discover(x, names, tiers=wrong_way)
    assert "shadow_length" not in graph.descendants("pendulum_angle")
    assert "shadow_position" not in graph.descendants("pendulum_angle")


def test_tiers_orient_what_data_cannot() -> None:
    x = linear_chain(1000, np.random.default_rng(0))
    graph = discover(x, ("a", "b", "c"), tiers=[["c"], ["b"], ["a"]])
    assert graph.edges == (("b", "a"), ("c", "b"))
    assert graph.confidence is not None
    assert graph.confidence[graph.adjacency].min() > 0.9


@pytest.mark.parametrize("as_networkx", [True, False])
def test_a_known_graph_is_only_weighed(as_networkx: bool) -> None:
    x, names, truth = labels("flow", 0, 0.1)
    wrong = nx.DiGraph([*(set(truth.edges) - {("hole", "flow")}), ("flow", "hole")])
    known = wrong if as_networkx else Graph.from_networkx(wrong, names)
    graph = discover(x, names, known=known)
    assert graph.names == names
    assert set(graph.edges) == set(wrong.edges)
    assert graph.confidence is not None
    flow_, hole = names.index("flow"), names.index("hole")
    ball, height = names.index("ball_size"), names.index("water_height")
    assert graph.confidence[flow_, hole] < 0.5 < graph.confidence[ball, height]


def test_of_a_known_graph_edges_count_and_not_their_weights() -> None:
    x, names, truth = labels("flow", 0, 0.1)
    known = nx.DiGraph()
    known.add_nodes_from(names)
    known.add_edges_from(truth.edges, weight=0.0)
    assert set(discover(x, names, known=known).edges) == set(truth.edges)
    known.add_node("lone")
    with pytest.raises(UsageError, match="'lone'"):
        discover(x, names, known=known)


def test_local_search_finds_what_all_graphs_would() -> None:
    for seed in range(3):
        x, names, _ = labels("flow", seed, 0.1)
        terms, free = IndependenceScore(x, seed=0), build_constraints(names)
        local = local_scores(terms, free, rng=np.random.default_rng(0))
        every = all_scores(terms, free)
        assert min(local.values()) == pytest.approx(min(every.values()))
        assert all(score == pytest.approx(every[dag]) for dag, score in local.items())


def test_every_stage_of_the_search_is_told() -> None:
    stages: list[int] = []
    local_scores(
        IndependenceScore(labels("flow", 0, 0.1)[0], seed=0),
        build_constraints(tuple("abcd")),
        rng=np.random.default_rng(0),
        on_stage=lambda: stages.append(1),
    )
    assert len(stages) == LOCAL_STAGES


def test_seven_nodes_within_limits() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 7))
    for j in range(1, 7):
        x[:, j] = np.tanh(2 * x[:, j - 1]) + 0.4 * x[:, j]
    names = tuple("abcdefg")
    graph = discover(x, names, forbidden=[("a", "c")], required=[("a", "b")])
    assert ("a", "b") in graph.edges
    assert ("a", "c") not in graph.edges
    assert {frozenset(edge) for edge in graph.edges} >= {frozenset(e) for e in ("ab", "bc", "cd")}


def test_there_are_543_graphs_of_four_nodes_and_25_of_three() -> None:
    x, names, _ = labels("flow", 0, 0.1)
    assert len(all_scores(IndependenceScore(x, seed=0), build_constraints(names))) == 543
    assert len(all_scores(IndependenceScore(x[:, :3], seed=0), build_constraints(names[:3]))) == 25


def test_residuals_explain_curves_and_no_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1))
    y = x**2 + 0.1 * rng.normal(size=(40, 1))
    u = leave_one_out_residuals(x, y - y.mean(), rng=rng)
    shuffled = leave_one_out_residuals(x, rng.normal(size=(40, 1)), rng=rng)
    assert np.square(u).mean() < 0.3 * y.var()
    assert np.square(shuffled).mean() > 0.7  # noise is not explained, though 40 landmarks could


def test_information_of_gaussians() -> None:
    """Their canonical correlations are rho, rho^2, rho^3 ..., which four polynomials catch."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000))
    for rho in (0.0, 0.2, 0.4):
        mixed = rho * a + np.sqrt(1 - rho**2) * b
        nats = information(rank_basis(a), rank_basis(mixed))
        assert nats == pytest.approx(
            -0.5 * np.log1p(-(rho ** (2 * np.arange(1, 5)))).sum(), abs=0.02
        )
        assert information(rank_basis(-np.exp(a)), rank_basis(mixed)) == pytest.approx(nats)


def test_information_is_zero_on_average_where_there_is_none() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(300, 2, 100))
    nats = [information(rank_basis(a), rank_basis(b)) for a, b in draws]
    assert abs(np.mean(nats)) < 0.02  # 16 / 200 = .08 without the correction


@pytest.mark.parametrize(
    ("table", "options", "error", "message"),
    [
        ({"labels": np.ones((50, 2))}, {}, DataError, "'a' has one value only"),
        ({"labels": np.eye(2)}, {}, DataError, "2 of 2 rows"),
        ({"labels": np.zeros((50, 3))}, {}, UsageError, "3 columns and names has 2"),
        ({"labels": np.zeros(50)}, {}, UsageError, "table"),
        ({"labels": [["x", "y"]] * 50}, {}, UsageError, "numbers"),
        ({"labels": np.full((50, 2), np.inf)}, {}, DataError, "'a' is infinite in row 0"),
        ({}, {"required": [("a", "x")]}, UsageError, "no factor 'x'"),
        ({}, {"required": [("a", "b"), ("b", "a")]}, UsageError, "cycle, a -> b -> a"),
        (
            {},
            {"required": [("a", "b")], "forbidden": [("a", "b")]},
            UsageError,
            "a -> b is also forbidden",
        ),
        (
            {},
            {"required": [("a", "b")], "tiers": [["b"], ["a"]]},
            UsageError,
            "a -> b is also against the order",
        ),
        ({}, {"tiers": [["a"], ["a"]]}, UsageError, "'a' is given twice"),
        ({}, {"tiers": ["a", "b"]}, UsageError, "no list of names"),
        (
            {},
            {"known": nx.DiGraph([("a", "b")]), "required": [("a", "b")]},
            UsageError,
            "leave out required",
        ),
        ({}, {"known": nx.DiGraph([("a", "c")])}, UsageError, "'b', 'c'"),
        ({}, {"bootstrap": -1}, UsageError, "negative"),
    ],
)
def test_what_is_wrong_is_named(
    table: dict[str, Any], options: dict[str, Any], error: type[DisentwineError], message: str
) -> None:
    x = table.get("labels", CAUSES.reshape(100, 2))
    with pytest.raises(error, match=message):
        discover(x, ("a", "b"), **options)


def test_one_label_is_a_graph_without_edges() -> None:
    assert discover(CAUSES[:, None], ("alone",)) == Graph(("alone",), [[0]], [[0]])


NAMES = ("cause", "effect")


def growing(seed: int, *, spread: float = 0.3) -> np.ndarray:
    """effect = exp(cause) exp(noise): the larger the effect, the larger its noise."""
    rng = np.random.default_rng(seed)
    cause = rng.uniform(-1, 1, 2000)
    return np.stack([cause, np.exp(cause + spread * rng.normal(size=2000))], axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_grows_with_a_label_misleads_and_its_logarithm_does_not(seed: int) -> None:
    labels = growing(seed)
    with threadpool_limits(limits=1):
        misled = discover(labels, NAMES)
        assert misled.edges == (("effect", "cause"),)
        assert misled.confidence is not None
        assert misled.confidence[1, 0] > 0.8
        mended = discover(np.stack([labels[:, 0], np.log(labels[:, 1])], axis=1), NAMES)
    assert mended.edges == (("cause", "effect"),)
    assert mended.confidence is not None
    assert mended.confidence[0, 1] > 0.9


def test_what_is_known_mends_it_too() -> None:
    with threadpool_limits(limits=1):
        graph = discover(growing(0), NAMES, tiers=[["cause"], ["effect"]])
    assert graph.edges == (("cause", "effect"),)


def test_a_relation_without_noise_is_told_either_way() -> None:
    """Radius and volume: the data have no direction, yet each is named, at times surely."""
    told = set()
    for seed in range(4):
        radius = np.random.default_rng(seed).lognormal(0, 0.3, 2000)
        with threadpool_limits(limits=1):
            graph = discover(np.stack([radius, radius**3], axis=1), NAMES)
        assert graph.confidence is not None
        told |= {edge for edge in graph.edges if graph.confidence.max() > 0.8}
    assert told
