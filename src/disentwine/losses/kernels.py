"""MMD and HSIC, their kernels, and a permutation test of independence."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from disentwine.errors import UsageError

SCALES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def inverse_multiquadratic(x: Tensor, y: Tensor) -> Tensor:
    r"""Inverse multiquadratic kernel $k(x, y) = \sum_s \frac{C_s}{C_s + \|x - y\|^2}$, $C_s = 2 d s$.

    2 d is the expected squared distance of two samples of the prior; s are the scales of `SCALES`.

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
    r"""Gaussian kernel $k(x, y) = \exp(-\|x - y\|^2 / 2 d)$; 2 d is the expected squared distance of two
    samples of the prior.

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
    """Squared Euclidean distances (n, m) between rows (n, d) and (m, d)."""
    # Not |x|^2 + |y|^2 - 2xy, which is inaccurate for close pairs in float32.
    return (x[:, None] - y).square().sum(2)


def mmd(x: Tensor, y: Tensor) -> Tensor:
    r"""Maximum mean discrepancy (MMD) with the inverse multiquadratic kernel,
    $\frac{1}{n(n-1)} \sum_{i \neq j} k(x_i, x_j) + \frac{1}{m(m-1)} \sum_{i \neq j} k(y_i, y_j)
    - \frac{2}{nm} \sum_{i,j} k(x_i, y_j)$.

    The estimate is unbiased: if both distributions are equal, its mean is 0 and it is often negative.

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
    """Mean over pairs of different samples; 0 if there are none."""
    n = len(k)
    return (k.sum() - k.trace()) / max(n * (n - 1), 1)


CHUNK_ELEMENTS = 2**18
"""Elements of permuted kernels computed at a time, so that they fit into the CPU cache."""

ROUNDING = 1e-14
"""Rounding error of a mean of products of kernels in double precision; kernels are at most 1."""


def hsic(x: Tensor, y: Tensor) -> Tensor:
    r"""Hilbert-Schmidt independence criterion (HSIC) with Gaussian kernels k and l,
    $\frac{1}{n^2} \sum_{i,j} k_{ij} l_{ij} + \frac{1}{n^4} \sum_{i,j,q,r} k_{ij} l_{qr}
    - \frac{2}{n^3} \sum_{i,j,q} k_{ij} l_{iq}$.

    In the limit it is 0 if and only if x and y are independent. The estimate is never below 0, and about
    1/n for independent x and y. The kernel widths assume latents of variance 1.

    References: Information Constraints on Auto-Encoding Variational Bayes, R. Lopez et al., 2018, eq. 5;
    Measuring Statistical Dependence with Hilbert-Schmidt Norms, A. Gretton et al., 2005, eq. 9.

    Arguments:
        x: (n, d).
        y: (n, e), paired with x.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> hsic(x, x)  # (1 - exp(-2))^2 / 4
    tensor(0.1869)
    >>> hsic(x, torch.zeros(2, 1))
    tensor(0.)
    """
    return (_centred(gaussian(x, x)) * gaussian(y, y)).mean()


class IndependenceTest(NamedTuple):
    """Result of a permutation test of independence.

    Arguments:
        p_value: fraction of permutations with a statistic at least as large, counting the identity.
        statistic: HSIC of the pairs.
        floor: mean HSIC of permuted pairs, the chance level.
    """

    p_value: float
    statistic: float
    floor: float


@torch.no_grad()
def independence_test(
    x: Tensor, y: Tensor, *, permutations: int = 199, seed: int = 0
) -> IndependenceTest:
    """Permutation test of the independence of paired rows x and y, with HSIC as the statistic.

    Columns are standardised first. The test is exact: for independent pairs, a p-value of p or less has
    probability p for every p that is a multiple of 1 / (permutations + 1).

    Reference: A Kernel Statistical Test of Independence, A. Gretton et al., 2007, section 3.

    Arguments:
        x: (n, d).
        y: (n, e).
        permutations: number of permutations.
        seed: of the permutations.

    >>> x, y = torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(0))
    >>> independence_test(x, y).p_value > 0.05
    True
    >>> independence_test(x, x**2).p_value
    0.005
    """
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or len(x) < 2:
        raise UsageError(
            f"x {tuple(x.shape)} and y {tuple(y.shape)} must be tables of the same two or more rows"
        )
    if permutations < 1:
        raise UsageError(f"permutations must be 1 or more, got {permutations}")
    x, y = _standardised(x), _standardised(y)
    k, l = _centred(gaussian(x, x)), gaussian(y, y)  # noqa: E741
    n = len(x)
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(permutations, n, generator=generator).argsort(1).to(x.device)
    shuffled = torch.cat(
        [
            (k * l[order[:, :, None], order[:, None]]).mean((1, 2))
            for order in orders.tensor_split(-(-permutations * n**2 // CHUNK_ELEMENTS))
        ]
    )
    statistic = (k * l).mean()
    # Sums in another order differ by rounding errors, which must not break ties, even at 0.
    as_large = int((shuffled >= statistic - 1e-9 * statistic.abs() - ROUNDING).sum())
    return IndependenceTest(
        (1 + as_large) / (1 + permutations), statistic.item(), shuffled.mean().item()
    )


def _centred(k: Tensor) -> Tensor:
    """Centred kernel $HkH$ with $H = I - 1/n$."""
    return k - k.mean(0, keepdim=True) - k.mean(1, keepdim=True) + k.mean()


def _standardised(x: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1 in double precision; constant columns are 0."""
    x = x.double()
    centred = x - x.mean(0)
    scale = centred.square().mean(0).sqrt()
    return centred / torch.where(scale > 0, scale, torch.ones_like(scale))
