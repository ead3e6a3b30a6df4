"""The importance-weighted bound and its densities against torch.distributions and closed forms."""

import math

import torch
from torch.distributions import Normal, kl_divergence

from disentwine.objectives.importance import (
    gaussian_log_density,
    importance_weighted_bound,
    kl_between_gaussians,
)


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
