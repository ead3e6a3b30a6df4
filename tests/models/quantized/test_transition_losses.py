"""Each loss of the transition is its equation, written out, and reaches what it is to teach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from disentwine.core.model import Batch
from disentwine.models import CTVAE
from disentwine.models.quantized.transition_losses import Contrast, TransitionWeights
from disentwine.nn.transition import ActionGraph

X, Y, LATER = torch.randint(0, 8, (3, 4, 8), generator=torch.Generator().manual_seed(0))
ACTION = torch.tensor([0, 1, 3, 2])
NOTHING = 4
Builder = Callable[..., CTVAE]


def pairs(action: Tensor = ACTION, later: Any = ()) -> Batch:
    return Batch(X, torch.zeros(4, 0), 0, Y, action, later)


def graph_of(model: CTVAE, n: int, action: int) -> ActionGraph:
    nodes = model.layer.nodes(model.look_up(X[n : n + 1]), model.table)
    return model.layer.graph(nodes, torch.tensor([[action]]))


def log_p(model: CTVAE, n: int, action: int, graph: ActionGraph) -> Tensor:
    """(nodes, codes) of what pair n becomes."""
    nodes = model.layer.nodes(model.look_up(X[n : n + 1]), model.table)
    return model.layer.predict(nodes, graph, model.table, torch.tensor([[action]]))[0, 0]


def surprise(of: Tensor, codes: Tensor) -> float:
    return -sum(of[node, code].item() for node, code in enumerate(codes.tolist()))


def written_out(model: CTVAE, n: int, own: int) -> dict[str, float]:
    """Every term of pair n, of which action `own` is taken to be the cause."""
    still, graph = graph_of(model, n, NOTHING), graph_of(model, n, own)
    identity = still._replace(edges=torch.eye(8)[None, None])
    fits = torch.tensor(
        [-surprise(log_p(model, n, a, graph_of(model, n, a)), Y[n]) for a in range(4)]
    )
    p = graph.probabilities[0, 0].double()
    return {
        "l_x": surprise(log_p(model, n, NOTHING, still), X[n]),
        "l_id_y": surprise(log_p(model, n, NOTHING, identity), X[n]),
        "l_id_m": (still.edges[0, 0] - torch.eye(8)).abs().sum().item(),
        "l_y": -fits[own].item(),
        "l_a": -fits.log_softmax(0)[own].item(),
        "kl": (p * (2 * p).log() + (1 - p) * (2 - 2 * p).log()).sum().item(),
        "l_m": graph.edges[0, 0].sum().item(),
        "l_dep": graph.no_parents[0, 0].square().sum().item(),
    }


def test_every_term_is_its_equation(small: Builder) -> None:
    model = small(transition={"edges": "expected"}).eval()
    found = model.loss(pairs()).terms
    assert set(found) == set(TransitionWeights.__dataclass_fields__)
    for n in range(4):
        for name, expected in written_out(model, n, int(ACTION[n])).items():
            assert found[name][n].item() == pytest.approx(expected, rel=1e-4, abs=1e-5), name


def test_without_names_the_graph_is_that_of_the_action_that_explains_y_best(small: Builder) -> None:
    model = small(transition={"edges": "expected"}, action_labels="latent").eval()
    losses = model.loss(pairs())
    for n in range(4):
        each = [written_out(model, n, action) for action in range(4)]
        best = min(each, key=lambda terms: terms["l_y"])
        for name in ("kl", "l_m", "l_dep"):
            assert losses.terms[name][n].item() == pytest.approx(best[name], rel=1e-4)
        mixture = (
            -torch.tensor([-terms["l_y"] for terms in each]).logsumexp(0) + torch.tensor(4).log()
        )
        assert losses.terms["l_y"][n].item() == pytest.approx(mixture.item(), rel=1e-4)
    for name in ("l_y", "l_a"):
        (slope,) = torch.autograd.grad(
            losses.terms[name].mean(), model.layer.leave, retain_graph=True
        )
        assert slope.any(), name


def test_terms_of_some_pairs_count_as_much_as_these_whether_it_learns_or_not(
    small: Builder,
) -> None:
    model = small(
        transition={"edges": "expected"},
        contrast=Contrast(negatives=1, fraction=0.3),
        weights=TransitionWeights(l_y=2.0),
    )
    later = ((LATER, ACTION),)
    learnt, measured = (
        model.train(mode).loss(pairs(later=later)).weights for mode in (True, False)
    )
    assert learnt == measured
    assert learnt["l_a"] == TransitionWeights().l_a * 2 / 4  # two pairs of four
    assert learnt["l_y"] == learnt["l_rollout"] == 2


@pytest.mark.parametrize("readout", ["argmax", "expectation"])
def test_a_later_action_teaches_the_one_before_where_outcomes_are_expected(
    small: Builder, readout: Any
) -> None:
    model = small(transition={"edges": "expected"}, readout=readout).train()
    first, second = torch.full((4,), 0), torch.full((4,), 1)
    losses = model.loss(pairs(first, later=((LATER, second),)))
    losses.terms["l_rollout"].mean().backward()
    slope = model.layer.pairs.w.grad
    assert slope is not None
    assert slope[1].any()
    assert slope[0].any() == (readout == "expectation")
    assert not slope[2].any()


def test_a_frozen_autoencoder_has_no_losses_where_actions_are_learnt(small: Builder) -> None:
    x, y = torch.rand(2, 4, 1, 16, 16)
    own = {"reconstruction", "commitment", "codebook"}
    frozen, joint = (
        small(joint=joint).loss(Batch(x, torch.zeros(4, 0), 0, y, ACTION))
        for joint in (False, True)
    )
    assert not own & set(frozen.terms)
    assert own <= set(joint.terms)


@pytest.mark.parametrize("side", ["x", "y"])
def test_joint_training_reaches_the_encoder_through_each_image(small: Builder, side: str) -> None:
    model = small(joint=True, transition={"edges": "expected"}).train()
    sides = dict(zip("xy", torch.rand(2, 4, 1, 16, 16), strict=True))
    sides[side].requires_grad_()
    losses = model.loss(Batch(sides["x"], torch.zeros(4, 0), 0, sides["y"], ACTION))
    losses.terms["l_a"].mean().backward()
    slope = sides[side].grad
    assert slope is not None
    assert slope.any()
