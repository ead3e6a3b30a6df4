"""Units of a code that say nothing, made anew."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from disentwine.core.types import ACTIVE_VARIANCE
from disentwine.errors import UsageError

NOISE = math.exp(-3)
"""The variance of a revived unit's noise: with that of the prior, 1, a decoder learns to ignore it sooner
than to use it."""

ALIKE = 1e-6
"""What is smaller beside its own size is rounding."""


@torch.no_grad()
def reset_inactive(
    last: nn.Linear, first: nn.Linear, features: Tensor, *, most: int | None = None
) -> Tensor:
    """Give units whose means hardly vary something to say; returns which they are.

    Each becomes a direction of the encoder's features, drawn at random, of mean 0 and variance 1 over the
    images, with little noise; the decoder hears it as it hears units when training begins.

    Arguments:
        last: the encoder's last layer, from features to means and log-variances of all units.
        first: the decoder's first layer.
        features: (n, d) what the encoder's last layer is given.
        most: reset_inactive_latents no more than so many; none revives all.

    >>> _ = torch.manual_seed(0)
    >>> last, first, features = nn.Linear(8, 4), nn.Linear(2, 8), torch.randn(50, 8)
    >>> with torch.no_grad(): last.weight[1] *= 0.01
    >>> reset_inactive(last, first, features), last(features)[:, 1].var().round(decimals=3)
    (tensor([1]), tensor(1., grad_fn=<RoundBackward1>))
    """
    units = first.in_features
    means = last(features)[:, :units]
    unused: Tensor = (means.var(0, correction=0) < ACTIVE_VARIANCE).nonzero()[:most, 0]
    to_mean = nn.Linear(last.in_features, units).to(last.weight)
    mean = to_mean(features)
    if len(unused) and mean.std(0, correction=0).min() <= ALIKE * mean.abs().max():
        raise UsageError(
            "training.reset_inactive_latents: "
            "to this start all training images are alike, so that no unit can tell of "
            "them; begin with a run that learnt something"
        )
    deviation = mean.std(0)
    last.weight[unused] = (to_mean.weight / deviation[:, None])[unused]
    last.bias[unused] = ((to_mean.bias - mean.mean(0)) / deviation)[unused]
    last.weight[units + unused] = 0
    last.bias[units + unused] = math.log(NOISE)
    first.weight[:, unused] = (
        nn.Linear(units, first.out_features).to(first.weight).weight[:, unused]
    )
    return unused
