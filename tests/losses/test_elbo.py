"""The terms of the evidence lower bound against torch.distributions and closed forms."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Bernoulli, Normal, kl_divergence

from disentwine.losses.elbo import (
    bernoulli_log_likelihood,
    gaussian_log_density,
    gaussian_log_likelihood,
    importance_weighted_bound,
    kl_between_gaussians,
    kl_to_standard_normal,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_bernoulli_agrees_with_torch_distributions() -> None:
    logits = 3 * torch.randn(7, 2, 5, 5, dtype=torch.float64)
    x = torch.bernoulli(torch.full_like(logits, 0.4))
    expected = Bernoulli(logits=logits).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(bernoulli_log_likelihood(x, logits), expected)


def test_bernoulli_of_grey_pixels_is_largest_at_the_pixel_itself() -> None:
    x = torch.tensor([[0.3]], dtype=torch.float64)
    at_pixel = bernoulli_log_likelihood(x, torch.logit(x))
    for other in (0.25, 0.35):
        assert at_pixel > bernoulli_log_likelihood(x, torch.logit(torch.full_like(x, other)))


def test_bernoulli_survives_extreme_logits() -> None:
    x = torch.tensor([[1.0, 0.0]])
    assert bernoulli_log_likelihood(x, torch.tensor([[1e4, -1e4]])).item() == 0.0
    assert bernoulli_log_likelihood(x, torch.tensor([[-1e4, 1e4]])).item() == -2e4


def test_gaussian_agrees_with_torch_distributions() -> None:
    x, mean = torch.randn(2, 7, 3, 4, 4, dtype=torch.float64)
    scale = torch.tensor(0.3, dtype=torch.float64)
    expected = Normal(mean, scale).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(gaussian_log_likelihood(x, mean, scale=scale), expected)


def test_divergence_agrees_with_torch_distributions() -> None:
    mean, log_variance = torch.randn(2, 9, 6, dtype=torch.float64)
    q = Normal(mean, (0.5 * log_variance).exp())
    expected = kl_divergence(q, Normal(torch.zeros_like(mean), torch.ones_like(mean)))
    torch.testing.assert_close(kl_to_standard_normal(mean, log_variance), expected)


def test_divergence_is_exact_for_posteriors_close_to_the_prior() -> None:
    """With exp(v) - 1 - v computed naively in float32, v = 1e-4 would give 0 or twice the truth."""
    v = 1e-4
    got = kl_to_standard_normal(torch.zeros(1), torch.full((1,), v)).item()
    assert got == pytest.approx((math.expm1(v) - v) / 2, rel=2e-3)


def test_bound_is_tight_for_the_exact_posterior_of_a_linear_gaussian_model() -> None:
    """For x = w z + noise, the ELBO with the exact posterior is log p(x), in expectation."""
    w, scale, n = 0.8, 0.5, 200_000
    x = torch.tensor([[0.7]], dtype=torch.float64)
    variance = 1 / (1 + w**2 / scale**2)
    mean = torch.full((1, 1), variance * w * x.item() / scale**2, dtype=torch.float64)
    log_variance = torch.full((1, 1), math.log(variance), dtype=torch.float64)
    z = mean + math.sqrt(variance) * torch.randn(n, 1, dtype=torch.float64)
    likelihoods = gaussian_log_likelihood(
        x.expand(n, 1), w * z, scale=torch.tensor(scale, dtype=torch.float64)
    )
    elbo = likelihoods.mean() - kl_to_standard_normal(mean, log_variance).sum()
    exact = Normal(0.0, math.sqrt(w**2 + scale**2)).log_prob(x).item()
    standard_error = likelihoods.std().item() / math.sqrt(n)
    assert abs(elbo.item() - exact) < 4 * standard_error


def test_bernoulli_has_the_slopes_of_torchs_own_cross_entropy() -> None:
    """For pixels and logits, also for logits so large that in float64 the sigmoid is a step."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, 7, dtype=torch.float64, generator=generator).requires_grad_()
    spread = torch.tensor([[0.1], [1.0], [10.0], [50.0], [800.0]], dtype=torch.float64)
    logits = spread * torch.randn(5, 7, dtype=torch.float64, generator=generator)
    logits.requires_grad_()
    weight = torch.rand(5, dtype=torch.float64, generator=generator)
    ours = bernoulli_log_likelihood(x, logits)
    theirs = -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    torch.testing.assert_close(ours, theirs)
    for got, wanted in zip(
        torch.autograd.grad(ours @ weight, (x, logits)),
        torch.autograd.grad(theirs @ weight, (x, logits)),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


def test_density_and_divergence_agree_with_torch_distributions() -> None:
    torch.manual_seed(0)
    z, mean_q, log_variance_q, mean_p, log_variance_p = torch.randn(5, 9, 6, dtype=torch.float64)
    q = Normal(mean_q, (0.5 * log_variance_q).exp())
    p = Normal(mean_p, (0.5 * log_variance_p).exp())
    torch.testing.assert_close(gaussian_log_density(z, mean_q, log_variance_q), q.log_prob(z))
    torch.testing.assert_close(
        kl_between_gaussians(mean_q, log_variance_q, mean_p, log_variance_p), kl_divergence(q, p)
    )


def test_one_sample_is_the_weight_itself() -> None:
    log_weights = torch.tensor([[-90.0, -80.0, 3.0]])
    assert torch.equal(importance_weighted_bound(log_weights), log_weights[0])


def test_equal_weights_give_that_weight_and_none_underflows() -> None:
    bound = importance_weighted_bound(torch.full((50, 2), -1e4, dtype=torch.float64))
    torch.testing.assert_close(bound, torch.full((2,), -1e4, dtype=torch.float64))
    bound = importance_weighted_bound(torch.tensor([[-1000.0], [0.0]]))
    torch.testing.assert_close(bound, torch.tensor([-math.log(2.0)]))


def test_exact_posterior_gives_the_likelihood_with_any_number_of_samples() -> None:
    """For z ~ N(0, 1), x = z + N(0, 1), every weight under the exact posterior is p(x)."""
    torch.manual_seed(0)
    x, half = torch.tensor(1.3, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    z = x / 2 + half.sqrt() * torch.randn(7, 4, dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    log_weights = (
        gaussian_log_density(x, z, zero)
        + gaussian_log_density(z, zero, zero)
        - gaussian_log_density(z, x / 2, half.log())
    )
    expected = Normal(0.0, math.sqrt(2)).log_prob(x).expand(4)
    torch.testing.assert_close(importance_weighted_bound(log_weights), expected)
