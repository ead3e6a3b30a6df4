"""DIP-VAE against its equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.model import Batch, Model
from disentwine.models import DIPVAEI, DIPVAEII, VAE
from disentwine.nn.encoders import DiagonalGaussian

from .helpers import as_numbers, batch, build, informative, losses


def moments(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """The posteriors' means and variances in double precision."""
    q = model.posterior(batch().x)
    return q.mean.detach().double().numpy(), q.log_variance.detach().double().exp().numpy()


def penalties(C: np.ndarray) -> tuple[float, float]:
    variances = np.diag(C)
    return float((C**2).sum() - (variances**2).sum()), float(((variances - 1) ** 2).sum())


def test_dip_vae_i_is_the_vae_with_penalties_on_the_covariance_of_the_means() -> None:
    model = informative(DIPVAEI, latent=4, lambda_od=3.0, lambda_d=7.0)
    mean, _ = moments(model)
    off_diagonal, diagonal = penalties(np.cov(mean, rowvar=False, bias=True))
    assert off_diagonal > 0.01
    terms = as_numbers(losses(model))
    assert terms["off_diagonal"] == pytest.approx(off_diagonal, rel=1e-4)
    assert terms["diagonal"] == pytest.approx(diagonal, rel=1e-4)
    vae = losses(informative(VAE, latent=4)).total.item()
    expected = vae + 3 * off_diagonal + 7 * diagonal
    assert losses(model).total.item() == pytest.approx(expected, rel=1e-6)


def test_dip_vae_ii_is_the_vae_with_penalties_on_the_moments_of_the_codes() -> None:
    model = informative(DIPVAEII, latent=4, lambda_od=3.0, lambda_d=7.0, lambda_3=11.0)
    mean, variance = moments(model)
    C = np.cov(mean, rowvar=False, bias=True) + np.diag(variance.mean(axis=0))
    off_diagonal, diagonal = penalties(C)
    centred = mean - mean.mean(axis=0)
    third = float(np.square((centred**3 + 3 * variance * centred).mean(axis=0)).sum())
    assert min(off_diagonal, third) > 0.01
    terms = as_numbers(losses(model))
    assert terms["off_diagonal"] == pytest.approx(off_diagonal, rel=1e-4)
    assert terms["diagonal"] == pytest.approx(diagonal, rel=1e-4)
    assert terms["third_moments"] == pytest.approx(third, rel=1e-4)
    vae = losses(informative(VAE, latent=4)).total.item()
    expected = vae + 3 * off_diagonal + 7 * diagonal + 11 * third
    assert losses(model).total.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("cls", [DIPVAEI, DIPVAEII])
def test_dip_vae_may_start_with_a_divergence_that_weighs_more_or_nothing(cls: type[Model]) -> None:
    x = batch().x
    for start in (61.0, 0.0):
        model = build(cls, start_beta=start, warm_up_steps=100)
        for step, weight in ((0, start), (50, (start + 1) / 2), (100, 1.0), (1000, 1.0)):
            assert losses(model, Batch(x, torch.zeros(8, 0), step=step)).weights["kl"] == weight
    assert losses(build(cls)).weights["kl"] == 1


def test_only_dip_vae_i_needs_the_means_to_vary() -> None:
    """Codes that are the prior for every image please DIP-VAE-II, and not DIP-VAE-I."""
    prior = DiagonalGaussian(torch.zeros(8, 4), torch.zeros(8, 4))
    for cls, expected in ((DIPVAEI, 4.0), (DIPVAEII, 0.0)):
        model = build(cls, latent=4)
        model.posterior = lambda x: prior
        assert as_numbers(losses(model))["diagonal"] == pytest.approx(expected)
