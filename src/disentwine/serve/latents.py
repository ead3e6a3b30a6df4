"""The code of a hierarchy as the page lays it out: layer by layer, what says something first."""

from __future__ import annotations

import numpy as np
import torch

from disentwine.contracts.capabilities import Layered
from disentwine.contracts.dataset import UInt8Array
from disentwine.contracts.model import Model
from disentwine.nn.pictures import to_unit_range
from disentwine.report.units import diverging_units, fair_share, unit_divergences
from disentwine.serve.schema import LatentLayer
from disentwine.training.trainer import fixed_noise

FIRST = 12
"""Sliders that are looked over at a glance."""


def describe_layers(model: Model, pictures: UInt8Array) -> list[LatentLayer]:
    """The layers from the top down; nothing for a model without.

    At first a fair share of the units that say something is shown; of all units, where none does or
    there are no pictures to tell.

    Arguments:
        model: in evaluation mode.
        pictures: (n, height, width, channels), over which divergences are averaged.
    """
    if not isinstance(model, Layered):
        return []
    layers = model.unit_layers
    busiest = live = list(range(len(layers)))
    kl = None
    if len(pictures):
        weight = next(model.parameters())
        with torch.no_grad(), fixed_noise(0):
            kl = unit_divergences(model, to_unit_range(torch.from_numpy(pictures)).to(weight))
    if kl is not None:
        mean = kl.double().mean(0).cpu().numpy()
        alive = diverging_units(mean, n=len(pictures)).details["alive"]
        busiest = np.argsort(-mean, kind="stable").tolist()
        live = [unit for unit in busiest if alive[unit]] or busiest
    shown = fair_share(live, layers, most=FIRST)
    return [
        LatentLayer(
            name=f"layer {layer}",
            units=[unit for unit in busiest if layers[unit] == layer],
            first=sum(layers[unit] == layer for unit in shown),
        )
        for layer in range(max(layers), 0, -1)
    ]
