"""How much two variables tell of each other, by canonical correlations of polynomials of ranks."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from disentwine.contracts.dataset import FloatArray

DEGREE = 4
GROUPS = 20
"""The rows are left out in so many groups to see how far an estimate is a matter of chance."""

MOST = 1 - 1e-6
"""The largest squared correlation, so that information stays finite."""


class RankBasis(NamedTuple):
    """Orthonormal functions of one variable's ranks.

    Arguments:
        columns: (n, DEGREE), those that the variable's few values leave no room for being 0.
        rank: how many columns are not 0.
    """

    columns: FloatArray
    rank: int


def rank_basis(u: FloatArray) -> RankBasis:
    """Legendre polynomials of the ranks of u, centred and made orthonormal.

    A variable of two values has room for one function only:

    >>> rank_basis(np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])).rank
    1
    """
    from scipy.stats import rankdata

    ranks = 2 * rankdata(u) / (len(u) + 1) - 1
    polynomials = np.polynomial.legendre.legvander(ranks, DEGREE)[:, 1:]
    columns, sizes, _ = np.linalg.svd(polynomials - polynomials.mean(axis=0), full_matrices=False)
    kept = sizes > 1e-6 * sizes[0]
    return RankBasis(columns * kept, int(kept.sum()))


def information(a: RankBasis, b: RankBasis) -> float:
    r"""$I = -\tfrac12 \sum_k \log(1 - \rho_k^2) - K_a K_b / 2n$ with canonical correlations $\rho$.

    The sum is the mutual information, in nats, of Gaussian vectors as correlated as these functions
    of the ranks: 0 only where none of them is correlated. The last term is what it is on average
    where there is no dependence, so that the estimate may be a little below 0.

    Reference: Relations between two sets of variates, H. Hotelling, 1936; the bias is that of the
    likelihood-ratio test of independence, M. Bartlett, 1938.

    >>> t = np.random.default_rng(0).normal(size=(2, 1000))
    >>> abs(information(rank_basis(t[0]), rank_basis(t[1]))) < 0.01
    True
    >>> information(rank_basis(t[0]), rank_basis(t[0] + t[1])) > 0.3
    True
    """
    bias = a.rank * b.rank / (2 * len(a.columns))
    return float(_nats(a.columns.T @ b.columns)) - bias


def information_without_groups(a: RankBasis, b: RankBasis) -> FloatArray:
    """(GROUPS,) the information, bias and all, with each group of rows left out."""
    n = len(a.columns)
    bounds = np.arange(GROUPS + 1) * n // GROUPS
    products = np.stack(
        [a.columns[start:end].T @ b.columns[start:end] for start, end in pairwise(bounds)]
    )
    kept = 1 - np.diff(bounds) / n
    return _nats((products.sum(axis=0) - products) / kept[:, None, None])


def _nats(products: FloatArray) -> FloatArray:
    squares = np.square(np.linalg.svd(products, compute_uv=False))
    nats: FloatArray = -0.5 * np.log1p(-np.minimum(squares, MOST)).sum(axis=-1)
    return nats
