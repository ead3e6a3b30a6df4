"""The maximum mean discrepancy between two sets of codes."""

from __future__ import annotations

from torch import Tensor

from disentwine.objectives.kernels import inverse_multiquadratic


def mmd(x: Tensor, y: Tensor) -> Tensor:
    r"""$\frac{1}{n(n-1)} \sum_{i \neq j} k(x_i, x_j) + \frac{1}{m(m-1)} \sum_{i \neq j} k(y_i, y_j)
    - \frac{2}{nm} \sum_{i,j} k(x_i, y_j)$ with the inverse multiquadratic kernel: 0 in the mean when both
    come from one distribution.

    Being unbiased, it is below 0 about as often as above when the two do agree.

    References: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018,
    algorithm 2; A Kernel Two-Sample Test, A. Gretton et al., 2012, eq. 3.

    Arguments:
        x: (n, d).
        y: (m, d).

    >>> import torch
    >>> mmd(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]]))  # 7 + 7 - 2 (1/6 + 2/7 + ...)
    tensor(5.4390)
    """
    return (
        _mean_of_pairs(inverse_multiquadratic(x, x))
        + _mean_of_pairs(inverse_multiquadratic(y, y))
        - 2 * inverse_multiquadratic(x, y).mean()
    )


def _mean_of_pairs(k: Tensor) -> Tensor:
    """The mean over pairs of different samples; 0 where there is no pair."""
    n = len(k)
    return (k.sum() - k.trace()) / max(n * (n - 1), 1)
