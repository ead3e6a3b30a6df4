"""Least squares against closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from disentwine.nn.encoders import DECODERS
from disentwine.nn.inversion import leaky, least_squares, smallest_singular_values


def test_a_linear_problem_is_solved_as_by_hand() -> None:
    """With residuals A n - b the minimum is (A'A + S)^-1 (A'b + S n0), S being 1/s^2."""
    torch.manual_seed(0)
    a, b, start = torch.randn(7, 3), torch.randn(4, 7), torch.randn(4, 3)
    spread = torch.tensor([0.3, 1.0, 5.0])
    found = least_squares(lambda n: n @ a.T - b, start, spread=spread, iterations=8)
    s = torch.diag(spread**-2)
    expected = torch.linalg.solve(a.T @ a + s, (b @ a + start @ s).T).T
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-3)


def test_no_step_makes_a_row_worse() -> None:
    """Residuals with many hills: every row ends no higher than it began, whatever the others do."""
    torch.manual_seed(0)
    start, spread = 3 * torch.randn(50, 2), torch.full((2,), 10.0)

    def residuals(n: torch.Tensor) -> torch.Tensor:
        return torch.sin(5 * n) + 0.1 * n

    def total(n: torch.Tensor) -> torch.Tensor:
        return residuals(n).square().sum(1) + ((n - start) / spread).square().sum(1)

    found = least_squares(residuals, start, spread=spread, iterations=6)
    assert (total(found) <= total(start)).all()
    assert (total(found) < 0.5 * total(start)).float().mean() > 0.5


def test_rows_do_not_see_each_other() -> None:
    start, spread = torch.tensor([[1.0], [1.5], [-3.0]]), torch.ones(1)

    def together(n: torch.Tensor) -> torch.Tensor:
        return 100 * (n**2 - 4)

    found = least_squares(together, start, spread=spread, iterations=12)
    alone = [least_squares(together, s[None], spread=spread, iterations=12)[0] for s in start]
    torch.testing.assert_close(found, torch.stack(alone))
    torch.testing.assert_close(found[:, 0].abs(), torch.full((3,), 2.0), atol=1e-3, rtol=0)


def test_it_is_the_least_singular_value_of_the_whole_jacobian() -> None:
    torch.manual_seed(0)
    g = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 20)).double()
    z = torch.randn(5, 3, dtype=torch.float64)
    for value, one in zip(smallest_singular_values(g, z), z, strict=True):
        J = torch.autograd.functional.jacobian(g, one)
        assert value.item() == pytest.approx(torch.linalg.svdvals(J)[-1].item(), rel=1e-9)


def test_a_direction_that_is_lost_is_told() -> None:
    """A decoder that sees the sum of two numbers only, and one whose units are all off."""
    z = torch.randn(4, 2, dtype=torch.float64)
    total = nn.Linear(2, 5).double()
    with torch.no_grad():
        total.weight[:, 1] = total.weight[:, 0]
    assert (smallest_singular_values(total, z) < 1e-12).all()
    off = nn.Sequential(nn.Linear(2, 5), nn.ReLU()).double()
    with torch.no_grad():
        off[0].bias.fill_(-100)
    assert (smallest_singular_values(off, z) == 0).all()
    assert (smallest_singular_values(leaky(off), z) > 0).all()


@pytest.mark.parametrize("network", DECODERS)
def test_leaky_decoders_lose_no_direction_at_the_start(network: str) -> None:
    torch.manual_seed(0)
    decoder = DECODERS[network](6, (16, 16, 1))  # type: ignore[index]
    g = leaky(decoder)
    assert [type(m) for m in g if not isinstance(m, nn.LeakyReLU)] == [
        type(m) for m in decoder.children() if not isinstance(m, nn.ReLU)
    ]
    assert (smallest_singular_values(g, torch.randn(3, 6)) > 1e-4).all()
