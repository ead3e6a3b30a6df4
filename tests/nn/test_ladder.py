"""Merged Gaussians against the product computed by hand, and layers that normalise."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal

from disentwine.nn.encoders import DiagonalGaussian
from disentwine.nn.images import evaluation_mode
from disentwine.nn.ladder import (
    BatchNorm,
    GaussianLayer,
    MeanCentred,
    deterministic,
    image_head,
    image_stem,
    merge,
    repeated,
)


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
    with evaluation_mode(norm):
        assert torch.equal(norm(row), trained)
    assert norm.training


def test_repeated_rows_go_over_all_images_again_and_again() -> None:
    q = DiagonalGaussian(torch.arange(3.0)[:, None], torch.zeros(3, 1))
    assert repeated(q, 2).mean[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert repeated(q, 1) is q


def centred(network: str = "compact") -> MeanCentred:
    torch.manual_seed(0)
    return MeanCentred(image_stem(network, (16, 16, 1), 8)[0], (16, 16, 1))  # type: ignore[arg-type]


def test_ends_meet() -> None:
    for network, width in (("mlp", 16 * 20 * 3), ("compact", 32), ("standard", 32)):
        front, features = image_stem(network, (16, 20, 3), 32)  # type: ignore[arg-type]
        x = torch.rand(2, 3, 16, 20)
        assert features == width
        assert front(x).shape == (2, width)
        assert image_head(network, 32, (16, 20, 3))(torch.zeros(2, 32)).shape == x.shape  # type: ignore[arg-type]


def test_normalisation_does_not_notice_in_training() -> None:
    front, norm = centred(), BatchNorm(8, affine=False)
    x = torch.rand(32, 1, 16, 16)
    plain = nn.Sequential(front.network, norm)(x)
    torch.testing.assert_close(norm(front(x)), plain, rtol=1e-3, atol=1e-3)


def test_the_mean_image_is_that_of_all_first_batches_and_kept_in_evaluation() -> None:
    front = centred("mlp")
    batches = torch.rand(5, 32, 1, 16, 16)
    for x in batches:
        front(x)
    torch.testing.assert_close(front.mean, batches.mean((0, 1))[None])
    x = torch.rand(3, 1, 16, 16)
    with evaluation_mode(front):
        torch.testing.assert_close(front(x), (x - front.mean).flatten(1))
        torch.testing.assert_close(front(x[:1]), front(x)[:1])
    single = front(x[:1])
    torch.testing.assert_close(single, (x[:1] - front.mean).flatten(1))
    assert front.batches == 5


def test_the_mean_of_features_hardly_moves_when_the_network_does() -> None:
    """On a white ground: an update of the weights shifts the mean features by little of their spread."""
    x = torch.ones(64, 1, 16, 16)
    for i in range(64):
        x[i, 0, i % 15 : i % 15 + 2, (7 * i) % 15 : (7 * i) % 15 + 2] = 0

    def shift(network: nn.Module, front: MeanCentred) -> float:
        before = network(x)
        kept = {name: value.clone() for name, value in front.state_dict().items()}
        with torch.no_grad():
            for parameter in front.parameters():
                parameter.add_(0.002)
        after = network(x)
        front.load_state_dict(kept)
        return ((after.mean(0) - before.mean(0)).abs() / before.std(0)).mean().item()

    front = centred()
    assert shift(front, front) < 0.1 * shift(front.network, front)
