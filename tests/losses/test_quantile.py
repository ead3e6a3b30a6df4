"""The quantile loss against the quantiles it is to find."""

import torch

from disentwine.core.random import fixed_noise
from disentwine.losses.quantile import quantile_levels, quantile_loss


def test_its_optimum_is_the_quantiles() -> None:
    """At the quantiles of a distribution the expected slope is zero; beside them it is not.

    The slope in each is a mean of n bounded numbers with standard deviation sqrt(level (1 - level)).
    """
    n, count = 40_000, 8
    with fixed_noise(0):
        x = torch.rand(n, 1)
    levels = quantile_levels(count, like=x)
    error = 4.5 * (levels * (1 - levels) / n).sqrt()
    for shift in (0.0, 0.05):
        quantiles = (levels + shift)[None].requires_grad_()
        (slope,) = torch.autograd.grad(count * quantile_loss(x, quantiles).mean(), quantiles)
        assert (slope.abs() < error).all() == (shift == 0)


def test_each_distribution_has_quantiles_of_its_own() -> None:
    x, quantiles = torch.tensor([[1.0, 10.0]]), torch.tensor([[1.0, 1.0], [10.0, 10.0]])
    assert torch.equal(quantile_loss(x, quantiles), torch.zeros(1, 2))
    assert (quantile_loss(x, quantiles.flip(0)) > 0).all()


def test_it_is_a_mean_over_levels() -> None:
    x = torch.randn(5, 3)
    few, many = torch.zeros(3, 1), torch.zeros(3, 9)
    torch.testing.assert_close(quantile_loss(x, few), 0.5 * x.abs())
    torch.testing.assert_close(quantile_loss(x, many), 0.5 * x.abs())
