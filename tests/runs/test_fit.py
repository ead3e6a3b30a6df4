"""A training too short for a part of it says so."""

from __future__ import annotations

from typing import Any

import pytest

from disentwine.models import BetaVAE


@pytest.mark.parametrize(("warm_up_steps", "told"), [(0, False), (3, False), (4, True)])
def test_a_training_that_ends_before_its_warm_up_says_so(
    warm_up_steps: int, told: bool, train: Any, build: Any, capsys: Any
) -> None:
    train(None, model=build(warm_up_steps=warm_up_steps), steps=3)
    warning = "training.steps=3 are fewer than model.warm_up_steps=4: the weight of the KL"
    assert (warning in capsys.readouterr().err) == told


def test_one_that_ends_before_its_weight_has_fallen_says_that(
    train: Any, pictures: Any, capsys: Any
) -> None:
    for start, told in (
        (60.0, "never falls to its last value"),
        (0.0, "never reaches its full value"),
    ):
        model = BetaVAE.for_data(pictures, latent=2, start_beta=start, warm_up_steps=4)
        train(None, model=model, steps=3)
        assert told in capsys.readouterr().err
