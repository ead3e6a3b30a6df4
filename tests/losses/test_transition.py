"""The losses of a transition against plain loops."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from disentwine.losses.transition import (
    distance_from_identity,
    edge_count,
    edge_divergence,
    negative_log_likelihood,
    orphan_penalty,
    unlabelled_likelihood,
)


def test_likelihood_is_summed_over_nodes() -> None:
    torch.manual_seed(0)
    log_p = torch.randn(2, 3, 4, 5).log_softmax(-1)
    codes = torch.randint(5, (2, 4))
    found = negative_log_likelihood(log_p, codes[:, None])
    for n in range(2):
        for a in range(3):
            expected = -sum(float(log_p[n, a, i, codes[n, i]]) for i in range(4))
            assert float(found[n, a]) == pytest.approx(expected, rel=1e-5)
    one_hot = torch.nn.functional.one_hot(codes, 5).float()[:, None]
    assert torch.allclose(negative_log_likelihood(log_p, one_hot), found)


def test_graph_losses_are_what_the_equations_say() -> None:
    edges = torch.tensor([[[1.0, 0, 1], [0, 1, 0], [1, 1, 0]]])
    assert edge_count(edges).tolist() == [5]
    assert distance_from_identity(edges).tolist() == [4]
    p = torch.tensor([[[0.2, 0.9], [0.5, 0.0]]])
    expected = sum(
        q * math.log(q / 0.5) if q else 0.0 for x in p.flatten().tolist() for q in (x, 1 - x)
    )
    assert float(edge_divergence(p)) == pytest.approx(expected, rel=1e-5)
    alone = (1 - p).prod(-1)
    assert torch.allclose(orphan_penalty(alone), alone.square().sum(-1))


@pytest.mark.parametrize("logit", [-100.0, -20.0, 20.0, 100.0])
def test_edges_that_are_certain_have_a_gradient(logit: float) -> None:
    alpha = torch.full((1, 1, 2), logit, requires_grad=True)
    edge_divergence(alpha.sigmoid()).sum().backward()
    assert alpha.grad is not None
    assert alpha.grad.isfinite().all()


def test_of_expected_graphs_the_norms_are_those_of_sampled_ones_on_average() -> None:
    p = torch.tensor([[0.2, 0.9], [0.5, 0.3]])
    norm = distance = 0.0
    for drawn in product((0.0, 1.0), repeat=4):
        graph = torch.tensor(drawn).view(2, 2)
        chance = float(torch.where(graph == 1, p, 1 - p).prod())
        norm += chance * float(graph.square().sum())
        distance += chance * float((graph - torch.eye(2)).square().sum())
    assert float(edge_count(p[None])) == pytest.approx(norm, rel=1e-5)
    assert float(distance_from_identity(p[None])) == pytest.approx(distance, rel=1e-5)


def test_unlabelled_pairs_are_a_mixture_whose_actions_are_all_used() -> None:
    torch.manual_seed(0)
    fit = torch.randn(6, 4)
    likelihood, balance = unlabelled_likelihood(fit)
    assert torch.allclose(likelihood, -fit.exp().mean(1).log(), atol=1e-6)
    assert balance >= 0
    _, unused = unlabelled_likelihood(torch.tensor([[9.0, -9.0]]).repeat(5, 1))
    assert float(unused) == pytest.approx(math.log(2), abs=1e-4)
