"""ConditionVAE against its equations."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.models import ConditionVAE

NAMES = ("angle", "light", "shadow")
MEAN, SCALE = (0.0, 90.0, 5.0), (20.0, 10.0, 2.0)


def build(**options: Any) -> ConditionVAE:
    torch.manual_seed(0)
    return ConditionVAE(
        image_shape=(16, 16, 3),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(NAMES, MEAN, SCALE, strict=True)
            )
        ),
        **options,
    )


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    u = torch.randn(6, 3, generator=generator) * torch.tensor(SCALE) + torch.tensor(MEAN)
    return Batch(torch.rand(6, 3, 16, 16, generator=generator), u)


@pytest.mark.parametrize("deviation", [1.0, 0.1])
def test_the_divergence_is_from_the_label_prior(batch: Batch, deviation: float) -> None:
    """Against torch's normals; N(0, 1) where a label is missing."""
    model = build(dimensions=2, label_dropout=0.0, label_std=deviation).double()
    u = batch.u.double().clone()
    u[0] = torch.nan
    u[1, 2] = torch.nan
    x = batch.x.double()
    got = model.loss(Batch(x, u)).terms["kl"]
    standardised = torch.nan_to_num((u - model.mean) / model.scale)
    with torch.no_grad():
        q = model.h(x, standardised, u.isfinite().double())
        scale = torch.where(u.isfinite(), deviation, 1.0).repeat_interleave(2, dim=1)
        prior = Normal(standardised.repeat_interleave(2, dim=1), scale)
        wanted = kl_divergence(Normal(q.mean, (q.log_variance / 2).exp()), prior).sum(1)
    torch.testing.assert_close(got.detach(), wanted)


def test_the_loss_is_the_bound(batch: Batch) -> None:
    losses = build().loss(batch)
    torch.testing.assert_close(losses.total, sum(term.mean() for term in losses.terms.values()))
    assert set(losses.terms) == {"reconstruction", "kl"}


def test_labels_reach_the_encoder_of_the_share_that_is_shown(batch: Batch) -> None:
    x = batch.x[:1].expand(400, -1, -1, -1)
    other = Batch(x, batch.u[:1].expand(400, -1))
    model = build(label_dropout=0.25)
    seen: list[torch.Tensor] = []
    model.h.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[2]))
    with fixed_noise(0), torch.no_grad():
        model.loss(other)
    (given,) = seen
    assert (given == given[:, :1]).all()
    share = given[:, 0].mean()
    assert abs(share - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 400)


def test_a_concept_that_is_set_moves_alone(batch: Batch) -> None:
    model = build().eval()
    assert model.graph.edges == ()
    with torch.no_grad():
        z = model.abduct(batch.x)
        moved = model.propagate(z, {1: torch.full((6,), 1.3)})
    assert torch.equal(moved[:, [0, 2]], z[:, [0, 2]])
    torch.testing.assert_close(model.values(moved)[:, 1], torch.full((6,), 1.3))
    change = moved[:, 1] - z[:, 1]
    torch.testing.assert_close(change, change[:, :1].expand(-1, 4))


def test_inference_needs_no_labels(batch: Batch) -> None:
    model = build().eval()
    with torch.no_grad():
        blank = model.h(batch.x, torch.randn(6, 3), torch.zeros(6, 3)).mean
    torch.testing.assert_close(model.represent(batch.x), blank.view(6, 3, 4).mean(-1))


def test_labels_to_draw_from_are_saved_with_the_weights() -> None:
    model, twin = build(), build()
    model.labels.fill(torch.full((5, 3), 2.5))
    twin.load_state_dict(model.state_dict())
    assert (twin.labels.sample(4) == 2.5).all()
