"""Importance sampling through a whole model agrees with the closed form."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from disentwine import VAE
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.evaluation.likelihood import log_likelihood

SIDE, LATENT, SCALE = 3, 2, 0.5


def linear_vae() -> VAE:
    """A VAE with linear encoder and decoder, whose likelihood is a Gaussian's."""
    torch.manual_seed(0)
    model = VAE(image_shape=(SIDE, SIDE, 1), latent=LATENT, network="mlp", likelihood="gaussian")
    pixels = SIDE * SIDE
    model.encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 2 * LATENT))
    model.decoder = nn.Sequential(nn.Linear(LATENT, pixels), nn.Unflatten(1, (1, SIDE, SIDE)))
    nn.init.constant_(model.log_scale, math.log(SCALE))
    return model


@pytest.fixture
def pictures() -> Arrays:
    images = np.random.default_rng(0).integers(0, 256, (60, SIDE, SIDE, 1), dtype=np.uint8)
    return Arrays(images=images)


def exact(model: VAE, x: np.ndarray) -> np.ndarray:
    layer = model.decoder[0]
    W, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    covariance = W @ W.T + SCALE**2 * np.eye(SIDE * SIDE)
    r = x - b
    quadratic = np.einsum("ni,ij,nj->n", r, np.linalg.inv(covariance), r)
    constant = np.linalg.slogdet(covariance)[1] + SIDE * SIDE * math.log(2 * math.pi)
    return np.asarray(-0.5 * (quadratic + constant))


def test_a_linear_vae_agrees_with_the_closed_form(pictures: Arrays) -> None:
    """Within three standard errors of the Monte Carlo mean, taken over ten repetitions."""
    model, indices = linear_vae(), np.arange(40)
    runs = [log_likelihood(model, pictures, indices, samples=5000, seed=s).value for s in range(10)]
    truth = exact(model, pictures.images[indices].reshape(40, -1) / 255.0).mean()
    assert abs(np.mean(runs) - truth) < 3 * np.std(runs, ddof=1) / math.sqrt(len(runs)) + 1e-4


def test_one_sample_is_the_evidence_lower_bound(pictures: Arrays) -> None:
    """The mean of log-weights over many single draws is minus the loss over as many."""
    model = linear_vae()
    x = torch.from_numpy(pictures.images[:8]).permute(0, 3, 1, 2) / 255.0
    with fixed_noise(1):
        weights = model.log_weights(x, samples=20_000)
    with fixed_noise(2), torch.no_grad():
        batch = Batch(x.repeat(2500, 1, 1, 1), torch.zeros(20_000, 0))
        elbo = -sum(term for term in model.loss(batch).terms.values())
    error = math.sqrt(
        (weights.var(0) / 20_000).sum().item() / 64
        + elbo.unflatten(0, (2500, 8)).var(0).sum().item() / 2500 / 64
    )
    assert abs(weights.mean() - elbo.mean()).item() < 4 * error


def test_the_bound_rises_with_samples(pictures: Arrays) -> None:
    model, indices = linear_vae(), np.arange(60)
    values = [log_likelihood(model, pictures, indices, samples=k).value for k in (1, 4, 1000)]
    assert values == sorted(values)


def test_a_model_that_does_not_score_is_refused(pictures: Arrays) -> None:
    with pytest.raises(UsageError, match="log_weights"):
        log_likelihood(nn.Linear(1, 1), pictures, np.arange(3))  # type: ignore[arg-type]
