"""Inactive latents are re-initialised, and only they."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from disentwine.errors import UsageError
from disentwine.metrics.active_latents import active_units
from disentwine.models import VAE
from disentwine.nn.encoders import ENCODERS, Network
from disentwine.nn.inactive_latents import RESET_VARIANCE, reset_inactive


def layers(*, unused: list[int]) -> tuple[nn.Linear, nn.Linear, torch.Tensor]:
    """The last layer of an encoder of four latents, the first of a decoder, and features."""
    torch.manual_seed(0)
    last, first, features = nn.Linear(16, 8), nn.Linear(4, 16), torch.randn(200, 16)
    with torch.no_grad():
        last.weight[unused] *= 1e-3
    return last, first, features


def test_what_is_unused_is_what_the_metric_calls_so() -> None:
    last, first, features = layers(unused=[0, 2])
    means = last(features)[:, :4].detach().numpy()
    active = active_units(means).details["active"]
    reset = reset_inactive(last, first, features).tolist()
    assert reset == [i for i, is_active in enumerate(active) if not is_active] == [0, 2]


def test_unused_units_vary_with_little_noise_and_are_heard() -> None:
    last, first, features = layers(unused=[1, 3])
    with torch.no_grad():
        first.weight[:, [1, 3]] = 0
    assert reset_inactive(last, first, features).tolist() == [1, 3]
    mean, log_variance = last(features).detach().chunk(2, dim=1)
    assert mean[:, [1, 3]].mean(0).abs().max() < 1e-5
    assert torch.allclose(mean[:, [1, 3]].var(0), torch.ones(2))
    assert torch.allclose(log_variance[:, [1, 3]], torch.tensor(math.log(RESET_VARIANCE)))
    assert first.weight[:, [1, 3]].abs().mean() > 0.1


def test_units_in_use_stay_as_they_are_to_the_bit() -> None:
    last, first, features = layers(unused=[1, 3])
    before = [last.weight.clone(), last.bias.clone(), first.weight.clone(), first.bias.clone()]
    reset_inactive(last, first, features)
    rows = [0, 2, 4, 6]
    assert torch.equal(last.weight[rows], before[0][rows])
    assert torch.equal(last.bias[rows], before[1][rows])
    assert torch.equal(first.weight[:, [0, 2]], before[2][:, [0, 2]])
    assert torch.equal(first.bias, before[3])


def test_no_more_are_revived_than_asked_for() -> None:
    last, first, features = layers(unused=[1, 3])
    before = [last.weight.clone(), last.bias.clone(), first.weight.clone()]
    assert reset_inactive(last, first, features, most=1).tolist() == [1]
    assert last(features)[:, 1].var().item() == pytest.approx(1, rel=1e-3)
    rows = [3, 7]
    assert torch.equal(last.weight[rows], before[0][rows])
    assert torch.equal(last.bias[rows], before[1][rows])
    assert torch.equal(first.weight[:, 3], before[2][:, 3])
    assert reset_inactive(last, first, features, most=5).tolist() == [3]


def test_where_all_are_used_nothing_changes() -> None:
    last, first, features = layers(unused=[])
    before = last(features)
    assert reset_inactive(last, first, features).tolist() == []
    assert torch.equal(last(features), before)


@pytest.mark.parametrize("network", ENCODERS)
def test_every_network_has_the_layers_that_are_made_anew(network: Network) -> None:
    model = VAE(image_shape=(16, 16, 1), latent=3, network=network)
    x = torch.rand(20, 1, 16, 16)
    with torch.no_grad():
        model.encoder[-1].weight[1] = 0  # type: ignore[index, union-attr]
    assert 1 in model.reset_inactive_latents(x)
    assert model.posterior(x).mean[:, 1].var().item() == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("features", [torch.zeros(20, 16), torch.ones(20, 16), torch.randn(1, 16)])
def test_what_takes_all_images_for_the_same_cannot_be_revived(features: torch.Tensor) -> None:
    last, first, _ = layers(unused=[])
    before = last.weight.clone()
    with pytest.raises(UsageError, match="maps all training images"):
        reset_inactive(last, first, features)
    assert torch.equal(last.weight, before)
