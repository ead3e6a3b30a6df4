"""Residuals, their mutual information, and the independence score of a graph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from disentwine.core.types import FloatArray

LANDMARKS = 120
RIDGES = tuple(10.0**power for power in range(-8, 0))
MIN_VARIANCE = 1e-9
"""Smallest variance of a direction of the features, relative to the largest."""


def leave_one_out_residuals(
    causes: FloatArray, effects: FloatArray, *, rng: np.random.Generator
) -> FloatArray:
    r"""Leave-one-out residuals of each effect by kernel ridge regression.

    Ridge regression on $\phi(x)$, the Nystroem features of a Gaussian kernel and $x$ itself. With $Z$
    the features' orthonormal directions, $e$ their variances and $s = e / (e + n\rho)$, the
    leave-one-out residual is $(y - \hat y)_t / (1 - h_t)$, where $h_t = 1/n + \sum_j Z_{tj}^2 s_j$;
    one fit serves all rows. For each effect the ridge $\rho$ minimises the leave-one-out error.

    Reference: Using the Nystroem method to speed up kernel machines, C. Williams and M. Seeger,
    2001; the leave-one-out form is that of PRESS, D. Allen, 1974.

    Arguments:
        causes: (n, d) of unit variance.
        effects: (n, m) of zero mean.
        rng: samples the landmarks.

    Returns:
        (n, m) residuals.

    >>> x = np.linspace(-1.5, 1.5, 50)[:, None]
    >>> u = leave_one_out_residuals(x, np.sin(3 * x), rng=np.random.default_rng(0))
    >>> bool(u.std() < 0.01)
    True
    """
    n = len(causes)
    z, e = _orthonormal(_features(causes, rng))
    projected, leverages = z.T @ effects, np.square(z)
    best, smallest = effects, np.full(effects.shape[1], np.inf)
    for ridge in RIDGES:
        shrink = e / (e + n * ridge)
        in_sample = effects - z @ (shrink[:, None] * projected)
        residual = in_sample / np.maximum(1 - 1 / n - leverages @ shrink, 1e-6)[:, None]
        error = np.square(residual).mean(axis=0)
        best = np.where(error < smallest, residual, best)
        smallest = np.minimum(error, smallest)
    return best


def randomised_residual(
    y: NDArray[np.bool_], probability: FloatArray, *, rng: np.random.Generator
) -> FloatArray:
    r"""Randomised quantile residual of a binary variable: sampled from $[0, 1 - p]$ where y is 0 and from
    $[1 - p, 1]$ where it is 1.

    It is uniform and independent of the causes if $p = P(y = 1 | causes)$; the difference $y - p$ is
    not.

    Reference: Randomized quantile residuals, P. Dunn and G. Smyth, 1996.

    Arguments:
        y: (n,) binary values.
        probability: (n,) that y is True.
        rng: samples within the intervals.

    >>> y = np.array([False, True])
    >>> randomised_residual(y, np.array([0.5, 0.5]), rng=np.random.default_rng(0)).round(2)
    array([0.32, 0.63])
    """
    p = np.clip(probability, 1e-3, 1 - 1e-3)
    uniform = rng.random(len(y))
    return np.where(y, 1 - p + uniform * p, uniform * (1 - p))


def _features(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    landmarks = x[rng.choice(len(x), min(LANDMARKS, len(x)), replace=False)]
    # The squared kernel width for d standardised inputs.
    d = x.shape[1]
    variances, directions = np.linalg.eigh(gaussian_kernel(landmarks, landmarks, variance=d))
    kept = variances > 1e-8 * variances[-1]
    whitened = directions[:, kept] / np.sqrt(variances[kept])
    features = np.hstack([gaussian_kernel(x, landmarks, variance=d) @ whitened, x])
    centred: FloatArray = features - features.mean(axis=0)
    return centred


def gaussian_kernel(a: FloatArray, b: FloatArray, *, variance: float) -> FloatArray:
    r"""$\exp(-\|a_i - b_j\|^2 / 2 s^2)$ of all pairs of rows, (n, m).

    Arguments:
        a: (n, d).
        b: (m, d).
        variance: $s^2$.

    >>> gaussian_kernel(np.zeros((1, 2)), np.ones((1, 2)), variance=1.0).round(3)
    array([[0.368]])
    """
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    kernel: FloatArray = np.exp(np.minimum(-squares / (2 * variance), 0))
    return kernel


def _orthonormal(features: FloatArray) -> tuple[FloatArray, FloatArray]:
    variances, directions = np.linalg.eigh(features.T @ features)
    kept = variances > MIN_VARIANCE * variances[-1]
    return features @ (directions[:, kept] / np.sqrt(variances[kept])), variances[kept]


DEGREE = 4

GROUPS = 20
"""Groups of rows of the jackknife."""

MAX_SQUARED_CORRELATION = 1 - 1e-6
"""Bound on squared correlations that keeps the information finite."""


class RankBasis(NamedTuple):
    """Orthonormal functions of one variable's ranks.

    Arguments:
        columns: (n, DEGREE); columns are zero if the variable has few values.
        rank: number of columns that are not 0.
    """

    columns: FloatArray
    rank: int


def rank_basis(u: FloatArray) -> RankBasis:
    """Legendre polynomials of the ranks of u, centred and orthonormal.

    For a binary variable there is one function only:

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

    The sum is the mutual information, in nats, of Gaussian vectors with the correlations of these
    functions of the ranks. The last term is its mean under independence, so the estimate can be slightly
    negative.

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
    """(GROUPS,) the information with each group of rows left out, not corrected for bias."""
    n = len(a.columns)
    bounds = np.arange(GROUPS + 1) * n // GROUPS
    products = np.stack(
        [a.columns[start:end].T @ b.columns[start:end] for start, end in pairwise(bounds)]
    )
    kept = 1 - np.diff(bounds) / n
    return _nats((products.sum(axis=0) - products) / kept[:, None, None])


def _nats(products: FloatArray) -> FloatArray:
    squares = np.square(np.linalg.svd(products, compute_uv=False))
    nats: FloatArray = -0.5 * np.log1p(-np.minimum(squares, MAX_SQUARED_CORRELATION)).sum(axis=-1)
    return nats


Dag = tuple[int, ...]
"""The parents of each node as a bit mask: bit j is set if node j is a parent."""

MIN_NOISE = 0.2
"""s: nodes whose noise is a smaller fraction of the standard deviation have less weight."""

DEPENDENT_CAUSE = 0.25
"""Additional relative cost of an edge whose cause is fully explained by its own causes."""


class NodeNoise(NamedTuple):
    """Exogenous noise of one node, given its parents.

    Arguments:
        basis: functions of its ranks.
        share: v, its variance as a share of the node's.
        weight: w = v (1 + s^2) / (v + s^2).
    """

    basis: RankBasis
    share: float
    weight: float


class IndependenceScore:
    r"""Dependence between the exogenous variables $u_i$ of a graph, plus a cost per edge.

    $$\sum_{i<j} w_i w_j I(u_i, u_j) + \lambda \sum_{p \to c} [1 + \tfrac14 (1 - v_p)],
    \qquad \lambda = .02 + \log n / n$$

    $u_i$ is $x_i$ for a root and otherwise its residual on its parents. For additive noise the sum of
    informations is the negative log-likelihood minus the entropies of the data. The weight of a node
    that is determined by its parents goes to 0: its residuals are errors of the regression, not noise,
    and their dependence is no evidence.

    Arguments:
        x: (n, k), one column per node.
        seed: of the landmarks.
    """

    def __init__(self, x: FloatArray, *, seed: int) -> None:
        self.n, self.k = x.shape
        self.edge_cost: float = 0.02 + math.log(self.n) / self.n
        self._x = (x - x.mean(axis=0)) / x.std(axis=0)
        self._seed = seed
        self._binary = [len(np.unique(column)) == 2 for column in x.T]
        self._residuals: dict[int, FloatArray] = {}
        self._exogenous: dict[tuple[int, int], NodeNoise] = {}
        self._pairs: dict[tuple[int, int, int, int], float] = {}
        self._groups: dict[tuple[int, int, int, int], FloatArray] = {}

    def score(self, dag: Dag) -> float:
        """The score of a graph; lower is better."""
        return sum(self.pair(*pair) for pair in _node_pairs(dag))

    def change(self, old: Dag, new: Dag) -> float:
        """Score of `new` minus score of `old`; fast when few parents differ."""
        changed = [i for i in range(self.k) if old[i] != new[i]]
        total = 0.0
        for i in changed:
            for j in range(self.k):
                if j != i and not (j in changed and j < i):
                    a, b = min(i, j), max(i, j)
                    total += self.pair(a, new[a], b, new[b]) - self.pair(a, old[a], b, old[b])
        return total

    def pair(self, i: int, i_parents: int, j: int, j_parents: int) -> float:
        """Contribution of two nodes and the edge between them to the score."""
        key = i, i_parents, j, j_parents
        if key not in self._pairs:
            cost = self._dependence(*key)
            for edge, cause in ((i_parents >> j & 1, key[2:]), (j_parents >> i & 1, key[:2])):
                if edge:
                    share = self.exogenous(*cause).share
                    cost += self.edge_cost * (1 + DEPENDENT_CAUSE * (1 - share))
            self._pairs[key] = cost
        return self._pairs[key]

    def dependence(self, dag: Dag) -> float:
        """The score without the cost of edges."""
        return sum(self._dependence(*pair) for pair in _node_pairs(dag))

    def dependence_without_groups(self, dag: Dag) -> FloatArray:
        """`dependence` with each group of rows left out."""
        total = np.zeros(GROUPS)
        for i, i_parents, j, j_parents in _node_pairs(dag):
            key = i, i_parents, j, j_parents
            if key not in self._groups:
                a, b = self.exogenous(i, i_parents), self.exogenous(j, j_parents)
                nats = information_without_groups(a.basis, b.basis)
                self._groups[key] = a.weight * b.weight * nats
            total += self._groups[key]
        return total

    def _dependence(self, i: int, i_parents: int, j: int, j_parents: int) -> float:
        a, b = self.exogenous(i, i_parents), self.exogenous(j, j_parents)
        return a.weight * b.weight * information(a.basis, b.basis)

    def exogenous(self, node: int, parents: int) -> NodeNoise:
        """The exogenous variable of a node given its parents."""
        key = node, parents
        if key not in self._exogenous:
            u = self._residual(node, parents)
            v = min(float(np.square(u).mean()), 1.0)
            w = v * (1 + MIN_NOISE**2) / (v + MIN_NOISE**2)
            if self._binary[node]:
                x = self._x[:, node]
                rng = np.random.default_rng([self._seed, node])
                u = randomised_residual(x > 0, (x - u - x.min()) / np.ptp(x), rng=rng)
            self._exogenous[key] = NodeNoise(rank_basis(u), v, w)
        return self._exogenous[key]

    def _residual(self, node: int, parents: int) -> FloatArray:
        if parents == 0:
            return np.asarray(self._x[:, node])
        # All nodes are fitted at once, as they share the features of these parents.
        if parents not in self._residuals:
            causes = self._x[:, [p for p in range(self.k) if parents >> p & 1]]
            rng = np.random.default_rng([self._seed, parents])
            self._residuals[parents] = leave_one_out_residuals(causes, self._x, rng=rng)
        return np.asarray(self._residuals[parents][:, node])


def _node_pairs(dag: Dag) -> Iterator[tuple[int, int, int, int]]:
    for i, i_parents in enumerate(dag):
        for j in range(i + 1, len(dag)):
            yield i, i_parents, j, dag[j]
