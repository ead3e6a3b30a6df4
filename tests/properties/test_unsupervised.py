"""DIP-VAE, beta-TCVAE, WAE-MMD and DC-IGN against their equations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from disentwine.core.capabilities import capabilities
from disentwine.core.model import Batch, Losses, Model
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays, Pendulum
from disentwine.errors import DataError, UsageError
from disentwine.losses.kernels import mmd
from disentwine.models import DCIGN, DIPVAEI, DIPVAEII, VAE, WAEMMD, BetaTCVAE, BetaVAE
from disentwine.nn.distributions import DiagonalGaussian

SHAPE = (16, 16, 1)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def batch(u: Tensor | None = None) -> Batch:
    torch.manual_seed(1)
    return Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0) if u is None else u)


def build(cls: type[Model], **options: Any) -> Any:
    torch.manual_seed(0)
    return cls(image_shape=SHAPE, **options)


def telling(cls: type[Model], **options: Any) -> Any:
    """One whose codes differ from image to image, as they hardly do at first."""
    model = build(cls, **options)
    with torch.no_grad():
        model.encoder[-1].weight[: model.latent] *= 1000
        model.encoder[-1].weight[model.latent :] *= 100
    return model


def losses(model: Model, given: Batch | None = None) -> Losses:
    given = given or batch()
    with fixed_noise(2):
        return model.loss(given)


def as_numbers(given: Losses) -> dict[str, float]:
    return {name: term.mean().item() for name, term in given.terms.items()}


def moments(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """The posteriors' means and variances in double precision."""
    q = model.posterior(batch().x)
    return q.mean.detach().double().numpy(), q.log_variance.detach().double().exp().numpy()


def penalties(C: np.ndarray) -> tuple[float, float]:
    variances = np.diag(C)
    return float((C**2).sum() - (variances**2).sum()), float(((variances - 1) ** 2).sum())


def test_dip_vae_i_is_the_vae_with_penalties_on_the_covariance_of_the_means() -> None:
    model = telling(DIPVAEI, latent=4, lambda_od=3.0, lambda_d=7.0)
    mean, _ = moments(model)
    off_diagonal, diagonal = penalties(np.cov(mean, rowvar=False, bias=True))
    assert off_diagonal > 0.01
    terms = as_numbers(losses(model))
    assert terms["off_diagonal"] == pytest.approx(off_diagonal, rel=1e-4)
    assert terms["diagonal"] == pytest.approx(diagonal, rel=1e-4)
    vae = losses(telling(VAE, latent=4)).total.item()
    expected = vae + 3 * off_diagonal + 7 * diagonal
    assert losses(model).total.item() == pytest.approx(expected, rel=1e-6)


def test_dip_vae_ii_is_the_vae_with_penalties_on_the_moments_of_the_codes() -> None:
    model = telling(DIPVAEII, latent=4, lambda_od=3.0, lambda_d=7.0, lambda_3=11.0)
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
    vae = losses(telling(VAE, latent=4)).total.item()
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


@pytest.mark.parametrize("cls", [VAE, BetaVAE, DIPVAEI, DIPVAEII])
def test_warm_up_begins_with_nothing_in_every_model(cls: type[Model]) -> None:
    model = build(cls, warm_up_steps=100)
    given = batch()
    first, half, last = (
        losses(model, given._replace(step=step)).weights["kl"] for step in (0, 50, 100)
    )
    assert (first, half) == (0, last / 2)
    assert last == losses(build(cls)).weights["kl"]


def test_only_dip_vae_i_needs_the_means_to_vary() -> None:
    """Codes that are the prior for every image please DIP-VAE-II, and not DIP-VAE-I."""
    prior = DiagonalGaussian(torch.zeros(8, 4), torch.zeros(8, 4))
    for cls, expected in ((DIPVAEI, 4.0), (DIPVAEII, 0.0)):
        model = build(cls, latent=4)
        model.posterior = lambda x: prior
        assert as_numbers(losses(model))["diagonal"] == pytest.approx(expected)


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
    model = telling(BetaTCVAE, training_images=50, latent=4, alpha=2.0, beta=5.0, gamma=3.0)
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
        as_numbers(losses(telling(BetaTCVAE, training_images=50, latent=4, estimator=name)))
        for name in ("stratified", "weighted")
    )
    assert weighted["index_code_mi"] > stratified["index_code_mi"] + 1
    assert weighted["reconstruction"] == stratified["reconstruction"]


def test_beta_tcvae_counts_the_images_that_batches_are_drawn_from() -> None:
    pictures = Arrays(images=np.zeros((60, 16, 16, 1), np.uint8))
    model = BetaTCVAE.for_data(pictures)
    assert model.training_images == len(pictures.split["train"]) < 60


def test_wae_is_squared_error_and_discrepancy_from_the_prior() -> None:
    model = build(WAEMMD, latent=3, lambda_mmd=7.0)
    given = batch()
    with fixed_noise(2), torch.no_grad():
        z = model.encoder(given.x)
        discrepancy = mmd(z, torch.randn(8, 3)).item()
        error = (given.x - model.decoder(z)).square().sum((1, 2, 3)).mean().item()
    expected = error + 7 * discrepancy
    assert losses(model).total.item() == pytest.approx(expected, rel=1e-5)
    assert capabilities(model) == ("decodes", "generates")


def test_wae_codes_have_no_noise_and_follow_the_prior_once_trained() -> None:
    model = build(WAEMMD, latent=2, lambda_mmd=100.0)
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


ONE_VARIES = torch.stack([torch.arange(8.0), torch.full((8,), 5.0), torch.zeros(8)], dim=1)


def test_dc_ign_holds_what_does_not_vary() -> None:
    model = build(DCIGN, varied=(0, 2), dimensions=2)
    assert model.latent == 4
    assert model.fixed(ONE_VARIES).tolist() == [False, False, True, True]
    assert not model.fixed(torch.rand(8, 3)).any()
    unknown = torch.full((8, 3), torch.nan)
    assert not model.fixed(unknown).any()


def test_dc_ign_decodes_held_codes_at_their_mean_and_pulls_them_there() -> None:
    """The gradients that section 3.1 writes into the network, from the terms' own."""
    eta = 0.3
    model = build(DCIGN, varied=(0, 1, 2), invariance=eta)
    given = batch(ONE_VARIES)
    torch.manual_seed(4)
    z = torch.randn(8, 3, requires_grad=True)
    model.posterior = lambda x: DiagonalGaussian(z, torch.full((8, 3), -200.0))

    clamped = torch.cat([z[:, :1], z[:, 1:].mean(0).expand(8, 2)], dim=1).detach().requires_grad_()
    reconstruction = -model.reconstruction_log_likelihood(given.x, clamped)
    reconstruction.mean().backward()
    got = losses(model, given)
    torch.testing.assert_close(got.terms["reconstruction"], reconstruction)

    (got.total - got.terms["kl"].mean()).backward()
    assert clamped.grad is not None
    assert z.grad is not None
    torch.testing.assert_close(z.grad[:, 0], clamped.grad[:, 0])
    pull = eta * (z - z.mean(0)).detach() / len(z)
    torch.testing.assert_close(z.grad[:, 1:], pull[:, 1:])


def test_dc_ign_is_a_vae_where_everything_varies() -> None:
    given = batch(torch.rand(8, 3))
    vae = losses(build(VAE, latent=3), given)
    model = losses(build(DCIGN, varied=(0, 1, 2)), given)
    assert torch.equal(model.total, vae.total)


def test_dc_ign_varies_causes_only() -> None:
    pendulum = Pendulum(size=32)
    model = DCIGN.for_data(pendulum)
    assert [pendulum.names[i] for i in model.varied] == ["pendulum_angle", "light_angle"]
    with pytest.raises(DataError, match="names no factors"):
        DCIGN.for_data(Arrays(images=np.zeros((60, 16, 16, 1), np.uint8)))


def test_wae_does_not_stay_at_a_blank_image_where_most_pixels_are_black() -> None:
    """Half of a blank image's error at most; a decoder that ended in a sigmoid would have 4/5."""
    model = build(WAEMMD, latent=4)
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


@pytest.mark.parametrize("model", [BetaVAE, DIPVAEI, DIPVAEII])
def test_a_weight_to_start_with_needs_time_to_change(model: Any) -> None:
    with pytest.raises(UsageError, match="warm_up_steps"):
        model(image_shape=(16, 16, 1), start_beta=60.0)


def test_a_weight_to_start_with_has_no_use_beside_a_capacity() -> None:
    with pytest.raises(UsageError, match="leave it out, or capacity"):
        BetaVAE(image_shape=(16, 16, 1), start_beta=60.0, capacity=5.0, warm_up_steps=10)
