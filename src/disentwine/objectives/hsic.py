"""The Hilbert-Schmidt independence criterion of two sets of paired codes, and the test it makes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from disentwine.errors import UsageError
from disentwine.objectives.kernels import gaussian

AT_ONCE = 2**18
ROUNDING = 1e-14
"""Of a mean of products of kernels, which are at most 1, in double precision."""

"""Numbers of permuted kernels that are held at a time: no more than the processor has close at hand."""


def hsic(x: Tensor, y: Tensor) -> Tensor:
    r"""$\frac{1}{n^2} \sum_{i,j} k_{ij} l_{ij} + \frac{1}{n^4} \sum_{i,j,q,r} k_{ij} l_{qr}
    - \frac{2}{n^3} \sum_{i,j,q} k_{ij} l_{iq}$, 0 in the limit if and only if x and y are independent;
    k and l are Gaussian kernels, made for codes of variance 1.

    Never below 0, and above it by about 1/n where x and y are independent.

    References: Information Constraints on Auto-Encoding Variational Bayes, R. Lopez et al., 2018, eq. 5;
    Measuring Statistical Dependence with Hilbert-Schmidt Norms, A. Gretton et al., 2005, eq. 9.

    Arguments:
        x: (n, d).
        y: (n, e), the row of each row of x.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> hsic(x, x)  # (1 - exp(-2))^2 / 4
    tensor(0.1869)
    >>> hsic(x, torch.zeros(2, 1))
    tensor(0.)
    """
    return (_centred(gaussian(x, x)) * gaussian(y, y)).mean()


class IndependenceTest(NamedTuple):
    """What a permutation test of independence found.

    Arguments:
        p_value: how often shuffled pairs seem at least as dependent, the pairs themselves counted.
        statistic: the criterion of the pairs.
        floor: its mean over shuffled pairs.
    """

    p_value: float
    statistic: float
    floor: float


@torch.no_grad()
def independence_test(
    x: Tensor, y: Tensor, *, permutations: int = 199, seed: int = 0
) -> IndependenceTest:
    """Whether the rows of x depend on those of y: their criterion, against that of shuffled pairs.

    Columns are standardised first, so that units do not matter. The test is exact: of independent
    pairs a share p has a p-value of p or less, for every p that is a multiple of 1 / (permutations + 1).

    Reference: A Kernel Statistical Test of Independence, A. Gretton et al., 2007, section 3.

    Arguments:
        x: (n, d).
        y: (n, e).
        permutations: how many shuffles.
        seed: of the shuffles.

    >>> draws = torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(0))
    >>> independence_test(draws[0], draws[1]).p_value > 0.05
    True
    >>> independence_test(draws[0], draws[0] ** 2).p_value
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
            for order in orders.tensor_split(-(-permutations * n**2 // AT_ONCE))
        ]
    )
    statistic = (k * l).mean()
    # Sums in another order differ in the last digits, which must not break ties, at 0 neither.
    as_large = int((shuffled >= statistic - 1e-9 * statistic.abs() - ROUNDING).sum())
    return IndependenceTest(
        (1 + as_large) / (1 + permutations), statistic.item(), shuffled.mean().item()
    )


def _centred(k: Tensor) -> Tensor:
    """$HkH$ with $H = I - 1/n$: rows and columns of mean 0."""
    return k - k.mean(0, keepdim=True) - k.mean(1, keepdim=True) + k.mean()


def _standardised(x: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1, in double precision; a constant one is 0."""
    x = x.double()
    centred = x - x.mean(0)
    scale = centred.square().mean(0).sqrt()
    return centred / torch.where(scale > 0, scale, torch.ones_like(scale))
