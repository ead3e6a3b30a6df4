"""Each parameter is trained by one loss, the model's or its discriminator's."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import nn

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, Losses
from disentwine.training.optimizers import discriminator_parameters, frozen, own_parameters


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 2)
        self.discriminator = nn.Linear(2, 1)


class AdversarialNetwork(Network):
    discriminator_training = DiscriminatorTraining()

    def discriminator_loss(self, batch: Batch) -> Losses:
        return Losses({})


def test_a_submodule_called_discriminator_is_none_without_its_loss() -> None:
    model = Network()
    assert discriminator_parameters(model) == []
    assert own_parameters(model) == list(model.parameters())


def test_each_parameter_is_trained_by_one_loss() -> None:
    model = AdversarialNetwork()
    assert discriminator_parameters(model) == list(model.discriminator.parameters())
    assert own_parameters(model) == list(model.encoder.parameters())


def test_parameters_that_need_no_gradient_are_trained_by_none() -> None:
    model = AdversarialNetwork()
    model.encoder.weight.requires_grad_(False)
    model.discriminator.bias.requires_grad_(False)
    assert own_parameters(model) == [model.encoder.bias]
    assert discriminator_parameters(model) == [model.discriminator.weight]


def test_frozen_parameters_are_as_before_after_an_error() -> None:
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    with suppress(KeyError), frozen(layer.parameters()):
        assert not layer.weight.requires_grad
        raise KeyError
    assert layer.weight.requires_grad
    assert not layer.bias.requires_grad


def test_gradients_pass_through_frozen_parameters() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    with frozen(second.parameters()):
        second(first(torch.ones(1, 2))).sum().backward()
    assert first.weight.grad is not None
    assert second.weight.grad is None
