"""Labels drawn along a graph, and moved along it."""

import pytest
import torch

from disentwine.nn.controller import CausalController
from disentwine.training.trainer import fixed_noise

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
        moved = controller.move(labels, {i: torch.full((5,), 1.7)})
        assert (moved[:, i] == 1.7).all()
        for j in range(4):
            assert torch.equal(labels[:, j], moved[:, j]) == (j not in follow)
        for j in follow - {i}:
            noise = controller.noise(labels)[:, j]
            torch.testing.assert_close(controller.noise(moved)[:, j], noise)


def test_an_effect_that_is_set_stays_where_it_is_put(controller: CausalController) -> None:
    labels = torch.randn(5, 4)
    moved = controller.move(labels, {0: torch.ones(5), 2: labels[:, 2]})
    assert torch.equal(moved[:, 2:], labels[:, 2:])


def test_draws_follow_the_mechanisms_and_the_quantiles(controller: CausalController) -> None:
    """Shares of draws below the quartiles, within 4.5 standard errors of a binomial's."""
    n = 20_000
    with torch.no_grad():
        controller.quantiles[0] = torch.linspace(-3, 5, controller.quantiles.shape[1])
        controller.quantiles[3] = 0.0
        with fixed_noise(0):
            labels = controller.draw(n)
        torch.testing.assert_close(labels[:, 3], controller.effect(3, labels))
    uniform = (labels[:, 0] + 3) / 8
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    for share in (0.25, 0.5, 0.75):
        error = ((uniform < share).float().mean() - share).abs()
        assert error < 4.5 * (share * (1 - share) / n) ** 0.5


def test_quantiles_that_have_crossed_are_sorted(controller: CausalController) -> None:
    with torch.no_grad(), fixed_noise(0):
        straight = controller.draw(10)
    with torch.no_grad(), fixed_noise(0):
        controller.quantiles.copy_(controller.quantiles.flip(1))
        assert torch.equal(controller.draw(10), straight)
