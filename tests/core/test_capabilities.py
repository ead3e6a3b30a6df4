"""Capabilities are recognised by methods."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from disentwine.core.capabilities import (
    CAPABILITIES,
    Adversarial,
    Decodes,
    DiscriminatorTraining,
    Generates,
    capabilities,
)
from disentwine.core.model import Batch, Losses


class Decoder(nn.Module):
    def decode(self, codes: Tensor) -> Tensor:
        return codes


class WithDiscriminator(nn.Module):
    discriminator_training = DiscriminatorTraining()

    def discriminator_loss(self, batch: Batch) -> Losses:
        return Losses({})


def test_a_module_without_methods_has_no_capability() -> None:
    assert capabilities(nn.Linear(3, 2)) == ()


@pytest.mark.parametrize(
    ("model", "capability"), [(Decoder, Decodes), (WithDiscriminator, Adversarial)]
)
def test_methods_are_a_capability(model: type[nn.Module], capability: type) -> None:
    (name,) = capabilities(model())
    assert CAPABILITIES[name] is capability
    assert not isinstance(model(), Generates)


def test_names_of_capabilities_are_unique() -> None:
    assert len(set(CAPABILITIES.values())) == len(CAPABILITIES)
