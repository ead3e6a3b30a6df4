"""Re-initialisation of inactive latents (posterior collapse)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from disentwine.core.types import ACTIVE_VARIANCE
from disentwine.errors import UsageError

RESET_VARIANCE = math.exp(-3)
"""Posterior variance of re-initialised latents; with the prior's, 1, decoders learn to ignore them."""

ROUNDING = 1e-6
"""Relative spread below which differences are rounding errors."""


@torch.no_grad()
def reset_inactive(
    last: nn.Linear, first: nn.Linear, features: Tensor, *, most: int | None = None
) -> Tensor:
    """Re-initialise the latents whose posterior means have almost no variance; returns their indices.

    Their posterior means become random projections of the encoder's features, standardised over the
    images, with a small posterior variance. The decoder's weights for them are sampled as at
    initialisation.

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
    projection = nn.Linear(last.in_features, latents).to(last.weight)
    mean = projection(features)
    if len(inactive) and mean.std(0, correction=0).min() <= ROUNDING * mean.abs().max():
        raise UsageError(
            "the encoder maps all training images to the same features, so that no latent can encode "
            "them; start from the weights of a trained run"
        )
    deviation = mean.std(0)
    last.weight[inactive] = (projection.weight / deviation[:, None])[inactive]
    last.bias[inactive] = ((projection.bias - mean.mean(0)) / deviation)[inactive]
    last.weight[latents + inactive] = 0
    last.bias[latents + inactive] = math.log(RESET_VARIANCE)
    fresh = nn.Linear(latents, first.out_features).to(first.weight)
    first.weight[:, inactive] = fresh.weight[:, inactive]
    return inactive
