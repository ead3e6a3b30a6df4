"""The VAE and the beta-VAE against their equations."""

import numpy as np
import pytest
import torch

from disentwine import VAE, BetaVAE
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.errors import UsageError
from disentwine.losses.elbo import kl_to_standard_normal

SHAPE = (16, 16, 1)


def batch(step: int = 0) -> Batch:
    torch.manual_seed(1)
    return Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0), step)


def beta_vae(**options: object) -> BetaVAE:
    torch.manual_seed(0)
    return BetaVAE(image_shape=SHAPE, latent=4, **options)  # type: ignore[arg-type]


def test_vae_is_beta_vae_with_beta_one() -> None:
    torch.manual_seed(0)
    vae = VAE(image_shape=SHAPE, latent=4)
    with fixed_noise(2):
        expected = vae.loss(batch()).total
    with fixed_noise(2):
        assert torch.equal(beta_vae(beta=1.0).loss(batch()).total, expected)


def test_total_is_reconstruction_plus_beta_times_divergence() -> None:
    losses = beta_vae(beta=7.0).loss(batch())
    expected = losses.terms["reconstruction"].mean() + 7 * losses.terms["kl"].mean()
    torch.testing.assert_close(losses.total, expected)


def test_divergence_is_that_of_the_posterior() -> None:
    model = beta_vae()
    q = model.posterior(batch().x)
    expected = kl_to_standard_normal(q.mean, q.log_variance).sum(1)
    torch.testing.assert_close(model.loss(batch()).terms["kl"], expected)


def test_warm_up_weighs_the_divergence_from_nothing_to_beta() -> None:
    model = beta_vae(beta=4.0, warm_up_steps=100)
    weights = [model.loss(batch(step)).weights["kl"] for step in (0, 50, 100, 1000)]
    assert weights == [0.0, 2.0, 4.0, 4.0]


def test_the_weight_may_start_high_and_fall_to_beta() -> None:
    model = beta_vae(beta=4.0, start_beta=60.0, warm_up_steps=100)
    weights = [model.loss(batch(step)).weights["kl"] for step in (0, 50, 100, 1000)]
    assert weights == [60.0, 32.0, 4.0, 4.0]


def test_capacity_pulls_the_divergence_to_c() -> None:
    model = beta_vae(beta=30.0, capacity=5.0, warm_up_steps=10)
    for step, C in ((0, 0.0), (5, 2.5), (99, 5.0)):
        losses = model.loss(batch(step))
        gap = (losses.terms["kl"].mean() - C).abs()
        torch.testing.assert_close(losses.terms["capacity_gap"], gap)
        expected = losses.terms["reconstruction"].mean() + 30 * gap
        torch.testing.assert_close(losses.total, expected)


def test_gaussian_decoder_learns_its_noise() -> None:
    model = beta_vae(likelihood="gaussian")
    model.loss(batch()).total.backward()
    assert model.log_scale.grad is not None
    assert model.log_scale.grad.abs() > 0


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_samples_are_images(likelihood: str) -> None:
    images = beta_vae(likelihood=likelihood).sample(3)
    assert images.shape == (3, 1, 16, 16)
    assert images.min() >= 0
    assert images.max() <= 1


def test_posterior_samples_have_the_posterior_moments() -> None:
    """Mean and variance of 40,000 samples, within 4.5 standard errors of each."""
    model, n = beta_vae(), 40_000
    with torch.no_grad():
        q = model.posterior(batch().x[:1])
        repeated = type(q)(q.mean.expand(n, 4), q.log_variance.expand(n, 4))
        with fixed_noise(3):
            z = (repeated.sample() - q.mean) / (0.5 * q.log_variance).exp()
    assert (z.mean(0).abs() < 4.5 / n**0.5).all()
    assert ((z.var(0) - 1).abs() < 4.5 * (2 / n) ** 0.5).all()


def test_codes_of_pictures_decode_to_their_reconstructions() -> None:
    model = VAE(image_shape=(16, 16, 3), latent=4)
    images = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    codes = model.represent(images)
    assert isinstance(codes, np.ndarray)
    decoded = (255 * model.decode(codes).permute(0, 2, 3, 1)).round().byte().numpy()
    np.testing.assert_array_equal(decoded, model.reconstruct(images))
    assert torch.equal(model.decode(codes), model.decode(torch.from_numpy(codes)))
    with pytest.raises(UsageError, match=r"latents \(5, 3\): give \(n, 4\)"):
        model.decode(codes[:, :3])
    with pytest.raises(UsageError, match="1 or more"):
        model.sample(-1)
