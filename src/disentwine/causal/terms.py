"""The score of a graph, as a sum over pairs of nodes that each is worked out once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from disentwine.causal.dependence import (
    GROUPS,
    RankBasis,
    information,
    information_without_groups,
    rank_basis,
)
from disentwine.causal.residuals import leave_one_out_residuals, randomised_residual
from disentwine.contracts.dataset import FloatArray

Dag = tuple[int, ...]
"""The parents of each node, as a number whose bits are the nodes: bit 2 set, node 2 is one."""

OWN_NOISE = 0.2
"""s: a node with less noise of its own than this share of its standard deviation counts less."""

DEPENDENT_CAUSE = 0.25
"""By so much an edge costs more when its cause is wholly explained by causes of its own."""


class Exogenous(NamedTuple):
    """The noise of one node, given its parents.

    Arguments:
        basis: functions of its ranks.
        share: v, its variance relative to that of the node.
        weight: w = v (1 + s^2) / (v + s^2).
    """

    basis: RankBasis
    share: float
    weight: float


class Terms:
    r"""How dependent a graph leaves the exogenous terms $u_i$ of its nodes, and what its edges cost.

    $$\sum_{i<j} w_i w_j I(u_i, u_j) + \lambda \sum_{p \to c} [1 + \tfrac14 (1 - v_p)],
    \qquad \lambda = .02 + \log n / n$$

    $u_i$ is $x_i$ for a root and otherwise its residual on its parents. For additive noise the sum
    of informations is what a likelihood leaves once the entropies of the data are taken off. The
    weight of a node that its parents determine goes to 0: it has no noise that could be dependent,
    only the errors of a fit, which a likelihood would take for evidence.

    Arguments:
        x: (n, k) one column a node.
        seed: of the landmarks.
    """

    def __init__(self, x: FloatArray, *, seed: int) -> None:
        self.n, self.k = x.shape
        self.edge_cost: float = 0.02 + math.log(self.n) / self.n
        self._x = (x - x.mean(axis=0)) / x.std(axis=0)
        self._seed = seed
        self._binary = [len(np.unique(column)) == 2 for column in x.T]
        self._residuals: dict[int, FloatArray] = {}
        self._exogenous: dict[tuple[int, int], Exogenous] = {}
        self._pairs: dict[tuple[int, int, int, int], float] = {}
        self._groups: dict[tuple[int, int, int, int], FloatArray] = {}

    def score(self, dag: Dag) -> float:
        """The smaller, the better the graph explains the data."""
        return sum(self.pair(*pair) for pair in _node_pairs(dag))

    def change(self, old: Dag, new: Dag) -> float:
        """By how much the score of `new` exceeds that of `old`; quick when few parents differ."""
        changed = [i for i in range(self.k) if old[i] != new[i]]
        total = 0.0
        for i in changed:
            for j in range(self.k):
                if j != i and not (j in changed and j < i):
                    a, b = min(i, j), max(i, j)
                    total += self.pair(a, new[a], b, new[b]) - self.pair(a, old[a], b, old[b])
        return total

    def pair(self, i: int, i_parents: int, j: int, j_parents: int) -> float:
        """What two nodes and the edge between them add to the score."""
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
        """The score without what the edges cost: how dependent the graph leaves its noises."""
        return sum(self._dependence(*pair) for pair in _node_pairs(dag))

    def dependence_without_groups(self, dag: Dag) -> FloatArray:
        """The same with each group of rows left out."""
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

    def exogenous(self, node: int, parents: int) -> Exogenous:
        """The exogenous term of a node with these parents."""
        key = node, parents
        if key not in self._exogenous:
            u = self._residual(node, parents)
            v = min(float(np.square(u).mean()), 1.0)
            w = v * (1 + OWN_NOISE**2) / (v + OWN_NOISE**2)
            if self._binary[node]:
                x = self._x[:, node]
                rng = np.random.default_rng([self._seed, node])
                u = randomised_residual(x > 0, (x - u - x.min()) / np.ptp(x), rng=rng)
            self._exogenous[key] = Exogenous(rank_basis(u), v, w)
        return self._exogenous[key]

    def _residual(self, node: int, parents: int) -> FloatArray:
        if parents == 0:
            return np.asarray(self._x[:, node])
        # All nodes are fitted at once, for they share the features of these parents.
        if parents not in self._residuals:
            causes = self._x[:, [p for p in range(self.k) if parents >> p & 1]]
            rng = np.random.default_rng([self._seed, parents])
            self._residuals[parents] = leave_one_out_residuals(causes, self._x, rng=rng)
        return np.asarray(self._residuals[parents][:, node])


def _node_pairs(dag: Dag) -> Iterator[tuple[int, int, int, int]]:
    for i, i_parents in enumerate(dag):
        for j in range(i + 1, len(dag)):
            yield i, i_parents, j, dag[j]
