"""Quantile (pinball) loss."""

from __future__ import annotations

import torch
from torch import Tensor


def quantile_levels(count: int, *, like: Tensor) -> Tensor:
    r"""Quantile levels $\tau_q = (q + \tfrac12) / Q$ for q = 0 ... Q - 1, the middles of equal intervals.

    >>> quantile_levels(2, like=torch.zeros(()))
    tensor([0.2500, 0.7500])
    """
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count


def quantile_loss(x: Tensor, quantiles: Tensor) -> Tensor:
    r"""Pinball loss $\tfrac1Q \sum_q \max(\tau_q (x - x_q), (\tau_q - 1)(x - x_q))$.

    Its expectation is least if $P(x < x_q) = \tau_q$.

    Reference: Regression Quantiles, R. Koenker and G. Bassett, 1978, eq. 1.2.

    Arguments:
        x: (n, k) samples of k distributions.
        quantiles: $x_q$, (k, Q), for the levels of `quantile_levels`.

    Returns:
        (n, k).

    >>> quantile_loss(torch.tensor([[3.0]]), torch.tensor([[1.0, 5.0]]))  # (2/4 + 2/4) / 2
    tensor([[0.5000]])
    """
    distance = x[..., None] - quantiles
    levels = quantile_levels(quantiles.shape[-1], like=x)
    return torch.maximum(levels * distance, (levels - 1) * distance).mean(-1)
