"""A learnt density of noise: that it is one, and what a mechanism gains by it."""

import math

import torch
from torch import Tensor, nn

from disentwine.nn.mixture import GaussianMixture


def test_it_is_a_density_and_starts_as_the_mixture_by_hand() -> None:
    mixture = GaussianMixture(components=3, least=0.1).double()
    r = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    density = mixture.log_density(r).exp()
    assert abs(torch.trapezoid(density, r).item() - 1) < 1e-6
    variance = math.exp(-1) + 0.01
    by_hand = sum(
        torch.exp(-((r - m) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        for m in (-2.0, 0.0, 2.0)
    )
    torch.testing.assert_close(density, by_hand / 3)


def test_noise_that_vanishes_has_a_finite_density() -> None:
    mixture = GaussianMixture(least=0.01)
    nn.init.constant_(mixture.log_scales, -100.0)
    assert mixture.log_density(mixture.means.detach()).isfinite().all()


def fitted(x: Tensor, y: Tensor, *, by_density: bool) -> float:
    """The slope of y = a x + noise, by the likelihood of a learnt density or by least squares."""
    slope, mixture = nn.Parameter(torch.zeros(())), GaussianMixture(least=0.01)
    optimiser = torch.optim.Adam([slope, *mixture.parameters()], lr=0.03)
    for step in range(600):
        optimiser.param_groups[0]["lr"] = 0.03 * (1 - step / 600)
        r = y - slope * x
        loss = -mixture.log_density(r).mean() if by_density else r.square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return slope.item()


def test_noise_that_ends_somewhere_tells_the_mechanism_better_than_least_squares() -> None:
    """Over ten data sets with uniform noise the mean squared error of a slope is far below that of least
    squares, whose own is known: var(noise) / sum(x^2)."""
    errors = {True: 0.0, False: 0.0}
    for seed in range(10):
        torch.manual_seed(seed)
        x, noise = torch.rand(400) * 2 - 1, torch.rand(400) * 3 - 1.5
        for by_density in errors:
            errors[by_density] += (
                fitted(x, 0.5 * x + noise, by_density=by_density) - 0.5
            ) ** 2 / 10
    expected = (9 / 12) / (400 / 3)
    assert expected / 4 < errors[False] < expected * 4
    assert errors[True] < errors[False] / 2
