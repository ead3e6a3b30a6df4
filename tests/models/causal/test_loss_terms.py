"""Losses and painters of models with concepts, term by term as their equations have them."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.kernels import hsic
from disentwine.models import CausalVAE, CausalWAE, ConditionVAE, LayeredCausalVAE
from disentwine.models.causal.causal_vae import CausalLatents
from disentwine.models.causal.pixel_attribution import Composition
from disentwine.nn.encoders import DiagonalGaussian
from disentwine.nn.layered_decoder import LayeredDecoder

NAMES = ("light", "angle", "shadow")
LAYERS = {"composition": Composition(((0,), (1, 2)), ((0, 0, 16, 16), (4, 0, 16, 16)))}
N, D = 6, 2


def build(cls: Any, **options: Any) -> Any:
    """A model that is not trained, with edges of weights that are neither 0 nor 1."""
    torch.manual_seed(0)
    weights = [[0, 0, 0.7], [0, 0, -0.4], [0, 0, 0]]
    graph = {} if cls is ConditionVAE else {"graph": Graph(NAMES, weights)}
    return cls(
        image_shape=(16, 16, 1),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(NAMES, (1.0, 5.0, 3.0), (0.5, 2.0, 1.0), strict=True)
            )
        ),
        **graph,
        **options,
    ).eval()


@pytest.fixture
def batch() -> Batch:
    """The second image has no label, the third lacks one."""
    generator = torch.Generator().manual_seed(1)
    u = torch.randn(N, 3, generator=generator) * torch.tensor([0.5, 2, 1])
    u += torch.tensor([1.0, 5, 3])
    u[1], u[2, 1] = torch.nan, torch.nan
    return Batch(torch.rand(N, 1, 16, 16, generator=generator), u)


def whole(batch: Batch) -> Batch:
    """The images that carry every label."""
    rows = batch.u.isfinite().all(dim=1)
    return Batch(batch.x[rows], batch.u[rows])


def draw(q: DiagonalGaussian, noise: Tensor) -> Tensor:
    return q.mean + (q.log_variance / 2).exp() * noise


def divergence(q: DiagonalGaussian, mean: Tensor, deviation: Tensor | float) -> Tensor:
    return kl_divergence(Normal(q.mean, (q.log_variance / 2).exp()), Normal(mean, deviation))


def bernoulli_cost(logits: Tensor, x: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum((1, 2, 3))


def test_the_loss_of_causal_vae_is_eq_14(batch: Batch) -> None:
    """The image is painted from a draw behind the mask layer; so are l_u and l_m of that draw."""
    model, batch = build(CausalVAE, dimensions=D, label_dropout=0.0), whole(batch)
    n = len(batch.x)
    with fixed_noise(2):
        terms = model.loss(batch).terms
    with fixed_noise(2):
        torch.rand(n, 1)  # which labels are hidden: none
        noise = torch.randn(n, 3 * D)
    u, A = model.standardise(batch.u), model.scm.A
    q = model.h(batch.x, u, torch.ones(n, 3))
    epsilon = draw(q, noise).view(n, 3, D)
    z = torch.einsum("ij,njd->nid", torch.linalg.inv(torch.eye(3) - A.T), epsilon)
    caused = model.mask.g["2"]((A[:, 2, None] * z).flatten(1))
    z_hat = torch.stack([epsilon[:, 0], epsilon[:, 1], epsilon[:, 2] + caused], dim=1)
    expected = {
        "reconstruction": bernoulli_cost(model.f.network(z_hat.flatten(1)), batch.x),
        "kl_epsilon": divergence(q, torch.zeros_like(noise), 1.0).sum(1),
        "l_u": (u[:, 2] - 0.7 * u[:, 0] + 0.4 * u[:, 1]).square(),
        "l_m": (z[:, 2] - caused).square().sum(1),
    }
    for name, value in expected.items():
        torch.testing.assert_close(terms[name], value, msg=lambda text, name=name: name + text)


def test_causal_vae_paints_what_is_behind_the_mask_layer() -> None:
    model = build(CausalVAE, dimensions=D)
    epsilon, z, z_hat = torch.randn(3, 4, 3, D)
    painted = model.decode_latents(CausalLatents(epsilon, z, z_hat))
    torch.testing.assert_close(painted, model.f.network(z_hat.flatten(1)).sigmoid())
    x = torch.rand(4, 1, 16, 16)
    torch.testing.assert_close(model.reconstruct(x), model.decode_latents(model.abduct(x)))


def test_condition_vae_paints_a_draw_of_its_posterior(batch: Batch) -> None:
    model, batch = build(ConditionVAE, dimensions=D, label_dropout=0.0), whole(batch)
    n = len(batch.x)
    with fixed_noise(2):
        found = model.loss(batch).terms["reconstruction"]
    with fixed_noise(2):
        torch.rand(n, 1)  # which labels are hidden: none
        noise = torch.randn(n, 3 * D)
    z = draw(model.h(batch.x, model.standardise(batch.u), torch.ones(n, 3)), noise)
    torch.testing.assert_close(found, bernoulli_cost(model.f.network(z), batch.x))


@pytest.mark.parametrize("dropout", [0.0, 1.0])
def test_independence_is_from_labels_and_where_there_are_none_from_what_is_read(
    batch: Batch, dropout: float
) -> None:
    """Also of images whose labels the encoder was not shown."""
    model = build(CausalWAE, dimensions=D, label_dropout=dropout)
    with torch.no_grad():
        model.f.labels.bias.add_(1.5)  # far from the 0 that stands for a missing label
        model.f.code[-1].weight.mul_(20)
    found = model.loss(batch).terms["independence"]
    known = batch.u.isfinite()
    read = model.f(batch.x, model.standardise(batch.u), known * (1.0 - dropout))
    expected = hsic(read.epsilon, torch.where(known, model.standardise(batch.u), read.predicted))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)


def test_the_loss_of_the_layered_vae_is_its_bound(batch: Batch) -> None:
    """Labels, where all are known and chosen, or a draw of q are painted with noise of one scale; each
    label ties its code, and codes of missing ones pay the divergence from N(0, 1)."""
    model = build(LayeredCausalVAE, **LAYERS, label_std=0.3, teacher_forcing=0.5)
    with fixed_noise(4):
        terms = model.loss(batch).terms
    with fixed_noise(4):
        chosen, near, noise = torch.rand(N, 1) < 0.5, torch.randn(N, 3), torch.randn(N, 3)
    known = batch.u.isfinite()
    from_labels = chosen & known.all(dim=1, keepdim=True)
    assert {True, False} == set(from_labels[[0, 3, 4, 5], 0].tolist())
    u, q = model.standardise(batch.u), model.posterior(batch.x)
    painted = model.decoder(torch.where(from_labels, u + 0.3 * near, draw(q, noise)))
    likelihood = Normal(painted, model.log_scale.exp()).log_prob(batch.x).sum((1, 2, 3))
    torch.testing.assert_close(terms["reconstruction"], -likelihood)
    kl = divergence(q, torch.where(known, u, 0.0), torch.where(known, 0.3, 1.0))
    torch.testing.assert_close(terms["kl"], kl.sum(1))
    free = divergence(q, torch.zeros(N, 3), 1.0).sum(1)
    torch.testing.assert_close(terms["kl"][1], free[1])


def test_errors_of_mechanisms_are_running_means(batch: Batch) -> None:
    """Squared, of what causes say once codes and causes are weighed, over images with all labels."""
    model = build(LayeredCausalVAE, **LAYERS).train()
    z, u = model.posterior(whole(batch).x).mean.detach(), model.standardise(whole(batch).u)
    before = model.mechanism_error.clone()
    model.loss(batch)
    with torch.no_grad():
        # The errors that weigh are those from before.
        now, model.encoder_error = model.encoder_error, torch.ones(3)
        after, model.mechanism_error = model.mechanism_error, before
        missed = (model.mechanism(2, model.merge(z)) - u[:, 2]).square().mean()
    expected = before.clone()
    expected[2] = 0.99 * before[2] + 0.01 * missed
    torch.testing.assert_close(after, expected)
    torch.testing.assert_close(now, 0.99 + 0.01 * (z - u).square().mean(0))


def scene() -> tuple[LayeredDecoder, Tensor]:
    """A decoder whose second painter has half of its box for region, and concepts."""
    torch.manual_seed(0)
    decoder = LayeredDecoder(
        [(0,), (1, 2)], image_shape=(8, 8, 3), group_boxes=[(0, 0, 8, 8), (2, 0, 8, 8)]
    )
    decoder.group_masks[1, :, 4:] = 0
    with torch.no_grad():
        decoder.background.normal_()
        for parameter in decoder.components.parameters():
            parameter.mul_(2)
    return decoder, 2 * torch.randn(5, 3)


def test_a_painter_changes_no_pixel_outside_its_region() -> None:
    decoder, z = scene()
    moved = z + torch.tensor([0.0, 1.0, -1.0])
    with torch.no_grad():
        changed = (decoder(z) != decoder(moved)).any(dim=1).any(dim=0)
    assert not changed[:, 4:].any()
    assert not changed[:2].any()
    assert changed[2:, :4].all()


@torch.no_grad()
def test_layers_cover_one_another_by_an_opacity_that_rises_evenly() -> None:
    """Painted over the background one after the other, by hand."""
    decoder, z = scene()
    image = decoder.background.sigmoid().repeat(5, 1, 1, 1)
    for painter, concepts, top, right in zip(
        decoder.components, (z[:, :1], z[:, 1:]), (0, 2), (8, 4), strict=True
    ):
        colour, t = painter(concepts)[..., :right].split([3, 1], dim=1)
        t = 2 * (t - 2)
        opacity = (torch.log1p((t + 4).exp()) - torch.log1p((t - 4).exp())) / 8
        below = image[:, :, top:, :right]
        image[:, :, top:, :right] = opacity * colour.sigmoid() + (1 - opacity) * below
    torch.testing.assert_close(decoder(z), image)
