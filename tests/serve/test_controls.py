"""The sliders of a hierarchy: layer by layer, those that say something first."""

from typing import Any

import numpy as np
import torch

from disentwine import VAE
from disentwine.models import LadderVAE
from disentwine.serve.controls import FIRST, describe_layers
from disentwine.serve.loaded_run import LoadedRun
from disentwine.testing import small_grid

SHAPE = (16, 16, 1)


class Told(LadderVAE):
    """A ladder of which each unit's divergence is known."""

    kl: Any = None

    def kl_per_latent(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(self.kl).expand(len(x), -1)


def told(*kl: float) -> list[tuple[str, list[int], int]]:
    model = Told(image_shape=SHAPE, layers=(4, 2), hidden=(16, 8)).eval()
    model.kl = kl
    found = describe_layers(model, np.zeros((3, *SHAPE), np.uint8))
    return [(layer.name, layer.latents, layer.first) for layer in found]


def test_the_top_layer_comes_first_and_live_units_before_others() -> None:
    assert told(0.0, 0.3, 0.001, 2.0, 0.0, 0.1) == [
        ("layer 2", [5, 4], 1),
        ("layer 1", [3, 1, 2, 0], 2),
    ]


def test_where_nothing_is_alive_everything_is_shown() -> None:
    assert [first for _, _, first in told(*[0.0] * 6)] == [2, 4]


def test_many_live_units_are_shown_in_fair_shares() -> None:
    data = small_grid(SHAPE)
    model = LadderVAE.for_data(data, layers=(40, 20, 2), hidden=(16, 8, 8)).eval()
    without = LoadedRun(model, None, 1).latent_layers
    assert [layer.first for layer in without] == [2, 5, 5]
    assert sum(layer.first for layer in without) == FIRST
    loaded_run = LoadedRun(model, data, 1)
    assert [layer.name for layer in loaded_run.latent_layers] == ["layer 3", "layer 2", "layer 1"]
    assert sorted(unit for layer in loaded_run.latent_layers for unit in layer.latents) == [
        *range(62)
    ]
    again = LoadedRun(model, data, 1)
    assert loaded_run.latent_layers == again.latent_layers


def test_models_without_layers_have_none() -> None:
    data = small_grid(SHAPE)
    assert LoadedRun(VAE.for_data(data, latent=3), data, 1).latent_layers == []
