"""The maximum mean discrepancy between two sets of codes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def mmd(x: Tensor, y: Tensor, *, variance: float = 1.0, scales: Sequence[float] = SCALES) -> Tensor:
    r"""$\frac{1}{n(n-1)} \sum_{i \neq j} k(x_i, x_j) + \frac{1}{m(m-1)} \sum_{i \neq j} k(y_i, y_j)
    - \frac{2}{nm} \sum_{i,j} k(x_i, y_j)$: 0 in the mean when both come from one distribution.

    Being unbiased, it is below 0 about as often as above when the two do agree.

    References: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018,
    algorithm 2; A Kernel Two-Sample Test, A. Gretton et al., 2012, eq. 3.

    Arguments:
        x: (n, d).
        y: (m, d).
        variance: $\sigma^2$ of the prior that the kernels are made for.
        scales: of the kernels that are summed.

    >>> mmd(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]]), scales=[0.5])  # 1 + 1 - 2 / 2
    tensor(1.)
    """
    return (
        _mean_of_pairs(inverse_multiquadratic(x, x, variance=variance, scales=scales))
        + _mean_of_pairs(inverse_multiquadratic(y, y, variance=variance, scales=scales))
        - 2 * inverse_multiquadratic(x, y, variance=variance, scales=scales).mean()
    )


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
    # Not by |x|^2 + |y|^2 - 2xy, which loses close pairs in float32.
    distances = (x[:, None] - y).square().sum(2)
    C = 2 * x.shape[1] * variance
    return torch.stack([C * s / (C * s + distances) for s in scales]).sum(0)


def _mean_of_pairs(k: Tensor) -> Tensor:
    """The mean over pairs of different samples; 0 where there is no pair."""
    n = len(k)
    return (k.sum() - k.trace()) / max(n * (n - 1), 1)
