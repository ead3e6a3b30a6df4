"""WAE-GAN against its algorithm."""

import pytest
import torch

from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.models import WAEGAN


@pytest.fixture
def model() -> WAEGAN:
    torch.manual_seed(0)
    return WAEGAN(image_shape=(16, 16, 1), latent=4, lambda_gan=3.0, discriminator_units=16)


@pytest.fixture
def batch() -> Batch:
    with fixed_noise(1):
        return Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))


def test_codes_are_to_pass_for_draws_of_the_prior(model: WAEGAN, batch: Batch) -> None:
    losses = model.loss(batch)
    z = model.encoder(batch.x)
    D = model.discriminator(z)[:, 0].sigmoid()
    error = (batch.x - model.decoder(z)).square().sum((1, 2, 3))
    torch.testing.assert_close(losses.terms["reconstruction"], error)
    torch.testing.assert_close(losses.total, (error - 3 * D.log()).mean())


def test_the_discriminator_tells_draws_of_the_prior_from_codes(model: WAEGAN, batch: Batch) -> None:
    with fixed_noise(2):
        loss = model.discriminator_loss(batch).total
    with fixed_noise(2):
        sampled = torch.randn(8, 4)
    D, D_code = (model.discriminator(z)[:, 0].sigmoid() for z in (sampled, model.encoder(batch.x)))
    torch.testing.assert_close(loss, -0.5 * (D.log() + (1 - D_code).log()).mean())
