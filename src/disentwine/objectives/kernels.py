"""Kernels between sets of codes: each a sum over several widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def inverse_multiquadratic(
    x: Tensor, y: Tensor, *, variance: float = 1.0, scales: Sequence[float] = SCALES
) -> Tensor:
    r"""$k(x, y) = \sum_s \frac{C_s}{C_s + \|x - y\|^2}$ with $C_s = 2 d \sigma^2 s$: the expected squared
    distance of two draws from the prior, times a scale.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin et al., 2018, section 4.

    Arguments:
        x: (n, d).
        y: (m, d).
        variance: $\sigma^2$ of the prior.
        scales: s, one for each kernel of the sum.

    Returns:
        (n, m).

    >>> inverse_multiquadratic(torch.zeros(1, 1), torch.ones(1, 1), scales=[0.5])  # 1 / (1 + 1)
    tensor([[0.5000]])
    """
    distances = squared_distances(x, y)
    C = 2 * x.shape[1] * variance
    return torch.stack([C * s / (C * s + distances) for s in scales]).sum(0)


def gaussian(
    x: Tensor, y: Tensor, *, variance: float = 1.0, scales: Sequence[float] = SCALES
) -> Tensor:
    r"""$k(x, y) = \sum_s \exp(-\|x - y\|^2 / C_s)$ with $C_s = 2 d \sigma^2 s$, a mixture of radial basis
    functions as wide as the kernels above.

    Reference: A Kernel Two-Sample Test, A. Gretton et al., 2012, section 8.

    Arguments:
        x: (n, d).
        y: (m, d).
        variance: $\sigma^2$ of the prior.
        scales: s, one for each kernel of the sum.

    Returns:
        (n, m).

    >>> gaussian(torch.zeros(1, 1), torch.ones(1, 1), scales=[0.5])  # exp(-1)
    tensor([[0.3679]])
    """
    distances = squared_distances(x, y)
    C = 2 * x.shape[1] * variance
    return torch.stack([torch.exp(-distances / (C * s)) for s in scales]).sum(0)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """(n, m) of rows (n, d) and (m, d)."""
    # Not by |x|^2 + |y|^2 - 2xy, which loses close pairs in float32.
    return (x[:, None] - y).square().sum(2)


Kernel = Literal["inverse-multiquadratic", "gaussian"]

KERNELS: dict[Kernel, Callable[..., Tensor]] = {
    "inverse-multiquadratic": inverse_multiquadratic,
    "gaussian": gaussian,
}
