"""Labels drawn along a graph, and moved along it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from disentwine.core.random import fixed_noise
from disentwine.nn.mechanisms import CausalController, GaussianMixture

CAUSES = [[], [], [0, 1], [2]]


@pytest.fixture
def controller() -> CausalController:
    torch.manual_seed(0)
    return CausalController(CAUSES, order=[1, 0, 2, 3])


def test_an_effect_depends_on_its_causes_alone(controller: CausalController) -> None:
    labels = torch.randn(3, 4, requires_grad=True)
    for i, causes in enumerate(CAUSES):
        felt = torch.zeros(4)
        if causes:
            (gradient,) = torch.autograd.grad(controller.effect(i, labels).sum(), labels)
            felt = gradient.abs().sum(0)
        assert torch.nonzero(felt)[:, 0].tolist() == causes


def test_labels_are_effects_and_noise(controller: CausalController) -> None:
    labels = torch.randn(5, 4)
    noise = controller.noise(labels)
    assert torch.equal(noise[:, :2], labels[:, :2])
    rebuilt = torch.stack([controller.effect(i, labels) for i in range(4)], dim=1) + noise
    torch.testing.assert_close(rebuilt, labels)


def test_what_is_not_caused_does_not_move(controller: CausalController) -> None:
    labels = torch.randn(5, 4)
    for i, follow in enumerate([{0, 2, 3}, {1, 2, 3}, {2, 3}, {3}]):
        moved = controller.intervene(labels, {i: torch.full((5,), 1.7)})
        assert (moved[:, i] == 1.7).all()
        for j in range(4):
            assert torch.equal(labels[:, j], moved[:, j]) == (j not in follow)
        for j in follow - {i}:
            noise = controller.noise(labels)[:, j]
            torch.testing.assert_close(controller.noise(moved)[:, j], noise)


def test_an_effect_that_is_set_stays_where_it_is_put(controller: CausalController) -> None:
    labels = torch.randn(5, 4)
    moved = controller.intervene(labels, {0: torch.ones(5), 2: labels[:, 2]})
    assert torch.equal(moved[:, 2:], labels[:, 2:])


def test_draws_follow_the_mechanisms_and_the_quantiles(controller: CausalController) -> None:
    """Shares of draws below the quartiles, within 4.5 standard errors of a binomial's."""
    n = 20_000
    with torch.no_grad():
        controller.quantiles[0] = torch.linspace(-3, 5, controller.quantiles.shape[1])
        controller.quantiles[3] = 0.0
        with fixed_noise(0):
            labels = controller.sample(n)
        torch.testing.assert_close(labels[:, 3], controller.effect(3, labels))
    uniform = (labels[:, 0] + 3) / 8
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    for share in (0.25, 0.5, 0.75):
        error = ((uniform < share).float().mean() - share).abs()
        assert error < 4.5 * (share * (1 - share) / n) ** 0.5


def test_quantiles_that_have_crossed_are_sorted(controller: CausalController) -> None:
    with torch.no_grad(), fixed_noise(0):
        straight = controller.sample(10)
    with torch.no_grad(), fixed_noise(0):
        controller.quantiles.copy_(controller.quantiles.flip(1))
        assert torch.equal(controller.sample(10), straight)


def test_it_is_a_density_and_starts_as_the_mixture_by_hand() -> None:
    mixture = GaussianMixture(components=3, min_std=0.1).double()
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
    mixture = GaussianMixture(min_std=0.01)
    nn.init.constant_(mixture.log_scales, -100.0)
    assert mixture.log_density(mixture.means.detach()).isfinite().all()


def fitted(x: Tensor, y: Tensor, *, by_density: bool) -> float:
    """The slope of y = a x + noise, by the likelihood of a learnt density or by least squares."""
    slope, mixture = nn.Parameter(torch.zeros(())), GaussianMixture(min_std=0.01)
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
