"""CausalWAE/layered: eq. 8 over what is read beyond labels."""

from typing import Any

import pytest
import torch
from torch.autograd.functional import jacobian

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Adversarial
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.kernels import hsic, mmd
from disentwine.models import LayeredCausalWAE
from disentwine.models.causal.pixel_attribution import Composition

NAMES = ("light", "angle", "shadow")


def build(**options: Any) -> LayeredCausalWAE:
    torch.manual_seed(0)
    graph = Graph.from_edges(NAMES, (("light", "shadow"), ("angle", "shadow")))
    return LayeredCausalWAE(
        image_shape=(16, 16, 1),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(NAMES, (1.0, 5.0, 3.0), (0.5, 2.0, 1.0), strict=True)
            )
        ),
        graph=graph,
        composition=Composition(((0,), (1, 2)), ((0, 0, 16, 16), (8, 0, 16, 16))),
        **({"discriminator_units": 8} | options),
    ).eval()


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    return Batch(
        torch.rand(6, 1, 16, 16, generator=generator), torch.randn(6, 3, generator=generator)
    )


def test_the_loss_is_eq_8_over_what_is_read_beyond_labels(batch: Batch) -> None:
    model = build(lambda_1=2.0, lambda_2=3.0, label_std=0.5, teacher_forcing=0.0)
    with fixed_noise(2):
        losses = model.loss(batch)
    with fixed_noise(2):
        torch.randn(6, 3)  # what would stand for missing labels
        torch.rand(6, 1)  # who is painted from labels: nobody
        torch.randn(6, 3)
        prior = torch.randn(6, 3)
    u, z = model.standardise(batch.u), model.encoder(batch.x)
    epsilon = (z - u) / 0.5
    torch.testing.assert_close(model.exogenous(batch.x, batch.u), epsilon)
    error = (batch.x - model.decoder(z)).square().sum((1, 2, 3)).mean()
    noise = u[:, 2] - model.mechanism(2, u)  # whose mean is 0 to begin with
    expected = (
        error
        + 2 * mmd(epsilon, prior)
        + 3 * hsic(epsilon, u)
        + 0.5 * epsilon.square().sum(1).mean()
        - model.noise["2"].log_density(noise).mean()
    )
    torch.testing.assert_close(losses.total, expected)


def test_images_are_painted_from_their_labels_where_that_is_chosen(batch: Batch) -> None:
    model = build(label_std=1e-9, teacher_forcing=1.0)
    error = (batch.x - model.decoder(model.standardise(batch.u))).square().sum((1, 2, 3))
    torch.testing.assert_close(model.loss(batch).terms["reconstruction"], error)


def test_missing_labels_are_not_learnt_from(batch: Batch) -> None:
    model = build(teacher_forcing=1.0)
    u = batch.u.clone()
    u[0], u[1, 2] = torch.nan, torch.nan
    terms = model.loss(Batch(batch.x, u)).terms
    assert all(term.isfinite().all() for term in terms.values())
    assert terms["labels"][0] == 0
    assert (terms["mechanisms"][:2] == 0).all()
    assert (terms["mechanisms"][2:] != 0).all()
    known, epsilon = model.standardise(u[2:]), model.exogenous(batch.x[2:], u[2:])
    torch.testing.assert_close(terms["independence"], hsic(epsilon, known))
    z = model.encoder(batch.x[:1])
    torch.testing.assert_close(
        terms["reconstruction"][0], (batch.x[:1] - model.decoder(z)).square().sum()
    )


def test_only_the_gan_plays_against_an_discriminator(batch: Batch) -> None:
    assert not isinstance(build(), Adversarial)
    model = build(divergence="gan")
    assert isinstance(model, Adversarial)
    assert model.discriminator is not None
    epsilon = model.exogenous(batch.x, batch.u)
    with fixed_noise(2):
        found = model.discriminator_loss(batch).total
    with fixed_noise(2):
        torch.randn(6, 3)  # what would stand for missing labels
        prior = torch.randn(6, 3)
    real, made = (model.discriminator(codes)[:, 0].double() for codes in (prior, epsilon))
    expected = (torch.log1p(torch.exp(-real)).mean() + torch.log1p(torch.exp(made)).mean()) / 2
    torch.testing.assert_close(found, expected.float())


def test_each_direction_of_the_code_shows_in_the_image(batch: Batch) -> None:
    model = build()
    slopes = model.injectivity(batch.x)
    with torch.no_grad():
        z = model.abduct(batch.x)[0]
    J = jacobian(lambda z: model.decoder(z[None]).flatten(), z)
    torch.testing.assert_close(slopes[0], torch.linalg.svdvals(J)[-1])
