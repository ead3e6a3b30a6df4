"""Decoders that lose nothing, and the measure that tells."""

import pytest
import torch
from torch import nn

from disentwine.nn.injective import leaky, smallest_singular_values
from disentwine.nn.networks import DECODERS


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
