"""Merged Gaussians against the product computed by hand, and layers that normalise."""

import math

import pytest
import torch
from torch.distributions import Normal

from disentwine.nn.gaussian import DiagonalGaussian
from disentwine.nn.ladder import (
    BatchNorm,
    GaussianLayer,
    deterministic,
    merge,
    repeated,
)
from disentwine.nn.modes import evaluating


def gaussian(mean: float, variance: float) -> DiagonalGaussian:
    one = torch.ones(1, 1, dtype=torch.float64)
    return DiagonalGaussian(mean * one, math.log(variance) * one)


@pytest.mark.parametrize(
    ("a", "b", "mean", "variance"),
    [
        ((3.0, 1.0), (0.0, 2.0), 2.0, 2 / 3),  # precisions 1 and 1/2: (3 * 1 + 0) / 1.5
        ((-1.0, 0.25), (5.0, 1.0), 0.2, 0.2),  # precisions 4 and 1: (-4 + 5) / 5
        ((7.0, 2.0), (7.0, 2.0), 7.0, 1.0),
        ((1.0, 1e-12), (100.0, 1.0), 1.0, 1e-12),  # what is certain wins
    ],
)
def test_merging_is_the_product_by_hand(
    a: tuple[float, float], b: tuple[float, float], mean: float, variance: float
) -> None:
    for first, second in ((a, b), (b, a)):
        merged = merge(gaussian(*first), gaussian(*second))
        assert merged.mean.item() == pytest.approx(mean, rel=1e-9)
        assert merged.log_variance.exp().item() == pytest.approx(variance, rel=1e-9)


def test_merging_is_the_product_of_densities_up_to_a_constant() -> None:
    torch.manual_seed(0)
    q, p = (DiagonalGaussian(*torch.randn(2, 4, 3, dtype=torch.float64)) for _ in range(2))
    merged = merge(q, p)
    z = torch.linspace(-3, 3, 11, dtype=torch.float64)[:, None, None]

    def log_density(g: DiagonalGaussian) -> torch.Tensor:
        return Normal(g.mean, (0.5 * g.log_variance).exp()).log_prob(z)

    difference = log_density(q) + log_density(p) - log_density(merged)
    torch.testing.assert_close(difference, difference[:1].expand_as(difference))


def test_merging_survives_extreme_precisions() -> None:
    far = DiagonalGaussian(torch.tensor([[1.0]]), torch.tensor([[-200.0]]))
    merged = merge(far, DiagonalGaussian(torch.tensor([[9.0]]), torch.tensor([[200.0]])))
    assert merged.mean.item() == 1.0
    assert merged.log_variance.item() == -200.0


def test_a_layer_has_a_positive_variance_whatever_it_is_given() -> None:
    layer = GaussianLayer(3, 8, 2, depth=2, batch_norm=False)
    for scale in (0.0, 1.0, 1e6, -1e6):
        q = layer(torch.full((4, 3), scale))
        assert q.mean.shape == q.log_variance.shape == (4, 2)
        assert q.log_variance.isfinite().all()


def test_normalised_features_forget_scale_and_shift_of_their_input() -> None:
    torch.manual_seed(0)
    d = deterministic(5, 8, depth=1, batch_norm=True).double()
    y = torch.randn(64, 5, dtype=torch.float64)
    torch.testing.assert_close(d(y), d(100 * y + 7), rtol=1e-4, atol=1e-4)


def test_one_row_is_normalised_as_in_evaluation_and_changes_no_statistics() -> None:
    torch.manual_seed(0)
    norm = BatchNorm(4)
    norm(torch.randn(32, 4) * 3 + 1)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    row = torch.randn(1, 4)
    trained = norm(row)
    assert all(torch.equal(norm.state_dict()[name], value) for name, value in before.items())
    with evaluating(norm):
        assert torch.equal(norm(row), trained)
    assert norm.training


def test_repeated_rows_go_over_all_images_again_and_again() -> None:
    q = DiagonalGaussian(torch.arange(3.0)[:, None], torch.zeros(3, 1))
    assert repeated(q, 2).mean[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert repeated(q, 1) is q
