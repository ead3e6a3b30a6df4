"""The linear graph of NOTEARS, and the constraint it shares with CausalVAE."""

import numpy as np
import pytest
import torch

from disentwine.causal import discover_notears
from disentwine.causal import notears as linear
from disentwine.causal.notears import _acyclicity
from disentwine.errors import DataError, UsageError
from disentwine.nn.concept_layers import acyclicity


def test_acyclicity_is_zero_for_every_acyclic_graph_and_only_for_them() -> None:
    rng = np.random.default_rng(0)
    for m in (1, 2, 4, 7):
        dag = np.triu(rng.normal(size=(m, m)), 1)
        order = rng.permutation(m)
        A = torch.from_numpy(dag[np.ix_(order, order)])
        assert acyclicity(A).item() == 0
        if m > 1:
            A[order.argsort()[m - 1], order.argsort()[0]] = 0.1  # from the last back to the first
            assert acyclicity(A).item() > 0


@pytest.mark.parametrize("c", [0.5, 1.0, 3.0])
def test_acyclicity_in_closed_form(c: float) -> None:
    """A ring of m nodes, each edge w: the m-th power has one closed walk a node more."""
    for m in (2, 3, 5):
        ring = 0.7 * torch.roll(torch.eye(m, dtype=torch.float64), 1, dims=1)
        expected = m * (c / m * 0.49) ** m
        if m == 2:
            expected = (1 + c * 0.49 / 2) ** 2 + (1 - c * 0.49 / 2) ** 2 - 2
        assert acyclicity(ring, c=c).item() == pytest.approx(expected, rel=1e-6)


def test_acyclicity_has_the_gradient_that_the_solver_uses() -> None:
    A = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    A.requires_grad_()
    h = acyclicity(A)
    h.backward()  # type: ignore[no-untyped-call]
    value, gradient = _acyclicity(A.detach().numpy())
    assert value == pytest.approx(h.item())
    np.testing.assert_allclose(gradient, A.grad)


def test_linear_effects_with_equal_noise_are_learnt() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    x[:, 1] += 1.5 * x[:, 0]
    x[:, 3] += 1.2 * x[:, 1] - 0.9 * x[:, 2]
    graph = discover_notears(x, tuple("abcd"), standardise=False)
    assert graph.edges == (("a", "b"), ("b", "d"), ("c", "d"))
    assert graph.weights[2, 3] == pytest.approx(-0.9, abs=0.15)
    assert graph.confidence is None


def test_what_is_wrong_is_named() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(UsageError, match="negative"):
        discover_notears(x, ("a", "b"), sparsity=-1)
    with pytest.raises(DataError, match="'b' has one value only"):
        discover_notears(x * [1, 0], ("a", "b"))


def test_learning_is_watched_from_an_empty_start_to_the_end() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    x[:, 2] += 1.5 * x[:, 0]
    path: list[np.ndarray] = []
    watched = discover_notears(x, tuple("abc"), standardise=False, on_step=path.append)
    assert not path[0].any()
    assert watched == discover_notears(x, tuple("abc"), standardise=False)
    chosen = watched.adjacency
    np.testing.assert_allclose(path[-1][chosen], watched.weights[chosen], rtol=1e-3)
    assert len({step.tobytes() for step in path}) > 3


def test_the_weakest_edge_of_a_cycle_goes_however_long_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H(A) of a ring of twelve is lost beside 12 in double precision. Edges on no cycle stay."""
    k = 13
    found = np.zeros((k, k))
    found[:12, :12] = 0.4 * np.roll(np.eye(12), 1, axis=1)
    found[4, 5], found[3, 12] = -0.35, 0.305
    assert _acyclicity(found)[0] == 0
    monkeypatch.setattr(linear, "_augmented_lagrangian", lambda x, sparsity, on_step: found.copy())
    labels = np.random.default_rng(0).normal(size=(50, k))
    graph = discover_notears(labels, [f"n{i}" for i in range(k)])
    expected = found.copy()
    expected[4, 5] = 0
    np.testing.assert_array_equal(graph.weights, expected)
