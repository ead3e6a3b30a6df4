"""Adversarial objectives against their optima and closed forms."""

import math

import pytest
import torch

from disentwine.core.random import fixed_noise
from disentwine.losses.adversarial import (
    discriminator_loss,
    generator_loss,
    gradient_penalty,
    lazy_gradient_penalty,
    permute_dimensions,
)

N = 20_000
RHO = 0.8


def correlated(n: int) -> torch.Tensor:
    """Pairs of standard normals with correlation `RHO`, and one that is independent of both."""
    e = torch.randn(n, 3)
    return torch.stack([e[:, 0], RHO * e[:, 0] + math.sqrt(1 - RHO**2) * e[:, 1], e[:, 2]], dim=1)


def test_losses_are_the_cross_entropies_of_their_definition() -> None:
    true, false = torch.tensor([2.0, -1.0]), torch.tensor([0.5, -4.0])
    D, D_false = true.sigmoid(), false.sigmoid()
    expected = -0.5 * (D.log() + (1 - D_false).log())
    torch.testing.assert_close(discriminator_loss(true, false), expected)
    torch.testing.assert_close(generator_loss(false), -D_false.log())


def test_the_losses_are_finite_for_logits_of_any_size() -> None:
    huge = torch.tensor([-1e4, 1e4])
    assert discriminator_loss(huge, huge.flip(0)).isfinite().all()
    assert generator_loss(huge).isfinite().all()


def test_permuting_keeps_the_marginals_and_breaks_the_dependence() -> None:
    with fixed_noise(0):
        z = correlated(N)
        permuted = permute_dimensions(z)
    for before, after in zip(z.T, permuted.T, strict=True):
        assert torch.equal(before.sort().values, after.sort().values)
    # A sample correlation of independent numbers has a standard error of 1/sqrt(n).
    off_diagonal = torch.corrcoef(permuted.T)[torch.triu_indices(3, 3, 1).unbind()]
    assert (off_diagonal.abs() < 4.5 / math.sqrt(N)).all()
    assert torch.corrcoef(z.T)[0, 1] > 0.7


def test_the_best_discriminator_knows_the_total_correlation() -> None:
    """Of Gaussians, the log-ratio is quadratic, and the total correlation -log(1 - rho^2) / 2.

    The bound is five standard deviations of the answers of ten other seeds, which lie around the truth.
    """
    with fixed_noise(0):
        z = correlated(N)
        permuted = permute_dimensions(z)

    def features(z: torch.Tensor) -> torch.Tensor:
        pairs = torch.triu_indices(3, 3)
        return torch.cat([z[:, pairs[0]] * z[:, pairs[1]], torch.ones(len(z), 1)], dim=1)

    weights = torch.zeros(7, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = discriminator_loss(features(z) @ weights, features(permuted) @ weights).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    estimate = (features(z) @ weights).mean().item()
    assert estimate == pytest.approx(-0.5 * math.log(1 - RHO**2), abs=0.035)


def test_the_slope_penalty_is_half_the_squared_gradient() -> None:
    x = torch.randn(4, 3)
    torch.testing.assert_close(
        gradient_penalty(lambda x: x.square().sum(1), x), 2 * x.square().sum(1)
    )


def test_the_slope_penalty_has_a_slope_of_its_own() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    gradient_penalty(lambda x: x @ w, torch.zeros(3, 2)).mean().backward()
    torch.testing.assert_close(w.grad, w.detach())


def test_the_lazy_slope_penalty_is_as_heavy_on_average() -> None:
    x = torch.randn(4, 3)

    def judge(x: torch.Tensor) -> torch.Tensor:
        return x.square().sum(1)

    paid = torch.stack([lazy_gradient_penalty(judge, x, step=step) for step in range(64)])
    torch.testing.assert_close(paid.mean(0), gradient_penalty(judge, x))
    assert (paid == 0).all(1).sum() == 64 - 64 // 8
    with torch.no_grad():  # validation is not to depend on which step it comes after
        for step in (8, 9):
            torch.testing.assert_close(
                lazy_gradient_penalty(judge, x, step=step), gradient_penalty(judge, x)
            )


def test_the_slope_penalty_is_known_without_gradients() -> None:
    with torch.no_grad():
        penalty = gradient_penalty(lambda x: 3 * x[:, 0], torch.zeros(2, 5))
    assert torch.equal(penalty, torch.full((2,), 4.5))
    assert not penalty.requires_grad
