"""How sure each edge is, given every graph that was scored."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from disentwine.causal.search import Scores, adjacency
from disentwine.causal.terms import Dag, Terms
from disentwine.contracts.dataset import FloatArray

MOST_EVIDENCE = 1000
"""More rows than this make no surer: models are never true to the last nat."""

MISFIT = 2.0


def edge_confidence(terms: Terms, scores: Scores) -> FloatArray:
    r"""The chance of each edge against its reverse and its absence, (k, k) of [cause, effect].

    For each pair of nodes let $g$ be the best graph scored with the edge, with its reverse or with
    neither, and $\Delta_g$ what it leaves more dependent than the best of all, edges at their
    cost. The chance is a softmax of $-\Delta_g / \tau_g$ over the three, with

    $$\tau_g^2 = 1 / \min(n, 1000)^2 + \mathrm{sd}(\Delta_g)^2 + [2 (D - \lambda)_+]^2.$$

    A softmax of the scores alone would take chance for evidence: where two directions are equally
    good, as in a linear model with Gaussian noise, scores still differ by sd, a jackknife over
    groups of rows. And where even the best of all leaves more dependence D than an edge is worth,
    its noise is not additive and small differences say nothing. The higher cost of dependent
    causes, a preference that is no evidence either, is left out.

    Arguments:
        terms: of the data.
        scores: of the graphs that were looked at.
    """
    dags = list(scores)
    totals = np.array([scores[dag] for dag in dags])
    edges = np.stack([adjacency(dag) for dag in dags])
    best = dags[int(totals.argmin())]
    floor = 1 / min(terms.n, MOST_EVIDENCE)
    misfit = MISFIT * max(terms.dependence(best) - terms.edge_cost, 0.0)
    best_groups = terms.dependence_without_groups(best)

    def evidence(members: NDArray[np.bool_]) -> float:
        if not members.any():
            return -math.inf
        dag = dags[int(np.argmin(np.where(members, totals, np.inf)))]
        gap = _evidence_cost(terms, dag) - _evidence_cost(terms, best)
        chance = jackknife(terms.dependence_without_groups(dag) - best_groups)
        return -gap / math.hypot(floor, chance, misfit)

    confidence = np.zeros((terms.k, terms.k))
    for i in range(terms.k):
        for j in range(i + 1, terms.k):
            there, back = edges[:, i, j], edges[:, j, i]
            logits = np.array([evidence(with_it) for with_it in (there, back, ~(there | back))])
            chances = np.exp(logits - logits.max())
            confidence[i, j], confidence[j, i] = chances[:2] / chances.sum()
    return confidence


def jackknife(without: FloatArray) -> float:
    """The standard deviation of an estimate, from what it is without each group of rows.

    Reference: Bias and confidence in not-quite large samples, J. Tukey, 1958.

    >>> round(jackknife(np.array([1.0, 2.0, 3.0])), 3)  # sqrt(2/3 * 2)
    1.155
    """
    groups = len(without)
    return float(without.std() * math.sqrt(groups - 1))


def _evidence_cost(terms: Terms, dag: Dag) -> float:
    return terms.dependence(dag) + terms.edge_cost * sum(parents.bit_count() for parents in dag)
