"""WAE-MMD against its equation, and WAE-GAN against its algorithm."""

import pytest
import torch

from disentwine.core.capabilities import capabilities
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.kernels import mmd
from disentwine.models import WAEGAN, WAEMMD


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


def wae_mmd(**options: float) -> WAEMMD:
    torch.manual_seed(0)
    return WAEMMD(image_shape=(16, 16, 1), **options)


def test_wae_is_squared_error_and_discrepancy_from_the_prior(batch: Batch) -> None:
    model = wae_mmd(latent=3, lambda_mmd=7.0)
    with fixed_noise(2), torch.no_grad():
        z = model.encoder(batch.x)
        discrepancy = mmd(z, torch.randn(8, 3)).item()
        error = (batch.x - model.decoder(z)).square().sum((1, 2, 3)).mean().item()
    expected = error + 7 * discrepancy
    with fixed_noise(2):
        assert model.loss(batch).total.item() == pytest.approx(expected, rel=1e-5)
    assert capabilities(model) == ("decodes", "generates")


def test_wae_codes_have_no_noise_and_follow_the_prior_once_trained() -> None:
    model = wae_mmd(latent=2, lambda_mmd=100.0)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(3)
    halves = torch.rand(128, 1, 1, 2).repeat_interleave(8, dim=3).expand(128, 1, 16, 16)
    before = mmd(model.represent(halves), torch.randn(128, 2)).item()
    for _ in range(100):
        adam.zero_grad()
        model.loss(Batch(halves, torch.zeros(128, 0))).total.backward()
        adam.step()
    codes = model.represent(halves)
    assert torch.equal(codes, model.represent(halves))
    assert mmd(codes, torch.randn(128, 2)).item() < before / 10


def test_wae_does_not_stay_at_a_blank_image_where_most_pixels_are_black() -> None:
    """Half of a blank image's error at most; a decoder that ended in a sigmoid would have 4/5."""
    model = wae_mmd(latent=4)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(3)
    x = torch.zeros(64, 1, 16, 16)
    for image, (row, column) in zip(x, torch.randint(0, 11, (64, 2)).tolist(), strict=True):
        image[:, row : row + 5, column : column + 5] = 1
    for _ in range(150):
        adam.zero_grad()
        model.loss(Batch(x, torch.zeros(64, 0))).total.backward()
        adam.step()
    blank = x.square().mean()
    assert (model.reconstruct(x) - x).square().mean() < blank / 2
