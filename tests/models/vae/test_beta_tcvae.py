"""Beta-TCVAE against its equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.models import VAE, BetaTCVAE

from .helpers import as_numbers, batch, build, informative, losses


def test_beta_tcvae_with_weights_of_one_is_a_vae_whose_divergence_is_sampled() -> None:
    """The mean difference over 300 draws is within 4 standard errors of 0."""
    model = build(BetaTCVAE, training_images=1000, latent=4, beta=1.0)
    vae, given, differences = build(VAE, latent=4), batch(), []
    for seed in range(300):
        with fixed_noise(seed), torch.no_grad():
            total = model.loss(given).total
        with fixed_noise(seed), torch.no_grad():
            differences.append((total - vae.loss(given).total).item())
    assert np.std(differences) > 0
    assert abs(np.mean(differences)) < 4 * np.std(differences) / len(differences) ** 0.5


def test_beta_tcvae_weighs_the_three_parts() -> None:
    model = informative(BetaTCVAE, training_images=50, latent=4, alpha=2.0, beta=5.0, gamma=3.0)
    parts = as_numbers(losses(model))
    assert min(abs(part) for part in parts.values()) > 0.01
    expected = (
        parts["reconstruction"]
        + 2 * parts["index_code_mi"]
        + 5 * parts["total_correlation"]
        + 3 * parts["dimension_wise_kl"]
    )
    assert losses(model).total.item() == pytest.approx(expected, rel=1e-6)


def test_beta_tcvae_takes_the_estimator_that_is_asked_for() -> None:
    stratified, weighted = (
        as_numbers(losses(informative(BetaTCVAE, training_images=50, latent=4, estimator=name)))
        for name in ("stratified", "weighted")
    )
    assert weighted["index_code_mi"] > stratified["index_code_mi"] + 1
    assert weighted["reconstruction"] == stratified["reconstruction"]


def test_beta_tcvae_counts_the_images_that_batches_are_drawn_from() -> None:
    dataset = Arrays(images=np.zeros((60, 16, 16, 1), np.uint8))
    model = BetaTCVAE.for_data(dataset)
    assert model.training_images == len(dataset.split["train"]) < 60
