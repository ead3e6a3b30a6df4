"""Re-initialise inactive latents."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from disentwine.core.types import ACTIVE_VARIANCE
from disentwine.errors import UsageError

NOISE = math.exp(-3)
"""Posterior variance of a re-initialised latent; with that of the prior, 1, decoders learn to ignore it."""

ROUNDING = 1e-6
"""Relative spread below which differences are rounding errors."""


@torch.no_grad()
def reset_inactive(
    last: nn.Linear, first: nn.Linear, features: Tensor, *, most: int | None = None
) -> Tensor:
    """Re-initialise the latents whose posterior means hardly vary; returns their indices.

    The mean of each becomes a random projection of the encoder's features, standardised over the images,
    with little posterior noise. The decoder's weights for it are drawn as at initialisation.

    Arguments:
        last: last layer of the encoder, from features to means and log-variances of all latents.
        first: first layer of the decoder.
        features: (n, d) inputs of `last`.
        most: largest number of latents to re-initialise; all inactive ones when omitted.

    >>> _ = torch.manual_seed(0)
    >>> last, first, features = nn.Linear(8, 4), nn.Linear(2, 8), torch.randn(50, 8)
    >>> with torch.no_grad(): last.weight[1] *= 0.01
    >>> reset_inactive(last, first, features), last(features)[:, 1].var().round(decimals=3)
    (tensor([1]), tensor(1., grad_fn=<RoundBackward1>))
    """
    latents = first.in_features
    means = last(features)[:, :latents]
    inactive: Tensor = (means.var(0, correction=0) < ACTIVE_VARIANCE).nonzero()[:most, 0]
    to_mean = nn.Linear(last.in_features, latents).to(last.weight)
    mean = to_mean(features)
    if len(inactive) and mean.std(0, correction=0).min() <= ROUNDING * mean.abs().max():
        raise UsageError(
            "the encoder maps all training images to the same features, so that no latent can encode "
            "them; begin with the weights of a run that has learnt"
        )
    deviation = mean.std(0)
    last.weight[inactive] = (to_mean.weight / deviation[:, None])[inactive]
    last.bias[inactive] = ((to_mean.bias - mean.mean(0)) / deviation)[inactive]
    last.weight[latents + inactive] = 0
    last.bias[latents + inactive] = math.log(NOISE)
    fresh = nn.Linear(latents, first.out_features).to(first.weight)
    first.weight[:, inactive] = fresh.weight[:, inactive]
    return inactive
