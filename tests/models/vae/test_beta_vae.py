"""The weight of the KL divergence over time, in the beta-VAE and models that share it."""

from __future__ import annotations

from typing import Any

import pytest

from disentwine.core.model import Model
from disentwine.errors import UsageError
from disentwine.models import DIPVAEI, DIPVAEII, VAE, BetaVAE

from .helpers import batch, build, losses


@pytest.mark.parametrize("cls", [VAE, BetaVAE, DIPVAEI, DIPVAEII])
def test_warm_up_begins_with_nothing_in_every_model(cls: type[Model]) -> None:
    model = build(cls, warm_up_steps=100)
    given = batch()
    first, half, last = (
        losses(model, given._replace(step=step)).weights["kl"] for step in (0, 50, 100)
    )
    assert (first, half) == (0, last / 2)
    assert last == losses(build(cls)).weights["kl"]


@pytest.mark.parametrize("model", [BetaVAE, DIPVAEI, DIPVAEII])
def test_a_weight_to_start_with_needs_time_to_change(model: Any) -> None:
    with pytest.raises(UsageError, match="warm_up_steps"):
        model(image_shape=(16, 16, 1), start_beta=60.0)


def test_a_weight_to_start_with_has_no_use_beside_a_capacity() -> None:
    with pytest.raises(UsageError, match="leave it out, or capacity"):
        BetaVAE(image_shape=(16, 16, 1), start_beta=60.0, capacity=5.0, warm_up_steps=10)
