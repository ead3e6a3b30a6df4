"""Kernels between sets of codes whose prior is a standard normal."""

from __future__ import annotations

import torch
from torch import Tensor

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def inverse_multiquadratic(x: Tensor, y: Tensor) -> Tensor:
    r"""$k(x, y) = \sum_s \frac{C_s}{C_s + \|x - y\|^2}$ with $C_s = 2 d s$: the expected squared distance
    of two draws from the prior, times each scale s of `SCALES`.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin et al., 2018, section 4.

    Arguments:
        x: (n, d).
        y: (m, d).

    Returns:
        (n, m).

    >>> inverse_multiquadratic(torch.zeros(1, 1), torch.zeros(1, 1))  # one for each scale
    tensor([[7.]])
    """
    distances = squared_distances(x, y)
    C = 2.0 * x.shape[1]
    return torch.stack([C * s / (C * s + distances) for s in SCALES]).sum(0)


def gaussian(x: Tensor, y: Tensor) -> Tensor:
    r"""$k(x, y) = \exp(-\|x - y\|^2 / 2 d)$, as wide as two draws from the prior are apart.

    Reference: A Kernel Two-Sample Test, A. Gretton et al., 2012, section 8.

    Arguments:
        x: (n, d).
        y: (m, d).

    Returns:
        (n, m).

    >>> gaussian(torch.zeros(1, 1), torch.ones(1, 1))  # exp(-1/2)
    tensor([[0.6065]])
    """
    return torch.exp(-squared_distances(x, y) / (2.0 * x.shape[1]))


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """(n, m) of rows (n, d) and (m, d)."""
    # Not by |x|^2 + |y|^2 - 2xy, which loses close pairs in float32.
    return (x[:, None] - y).square().sum(2)
