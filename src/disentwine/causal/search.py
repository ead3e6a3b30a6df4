"""Exhaustive and hill-climbing search of graphs, and confidence of edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from disentwine.causal.constraints import GraphConstraints
from disentwine.causal.independence_score import Dag, IndependenceScore
from disentwine.core.types import FloatArray

EXHAUSTIVE = 5
"""Up to so many nodes all graphs are scored; there are 29,281 of five nodes, 3.8 million of six."""

RESTARTS = 10

LOCAL_STAGES = RESTARTS + 2

Scores = dict[Dag, float]
"""Scores of all graphs that were visited."""


def all_scores(terms: IndependenceScore, limits: GraphConstraints) -> Scores:
    """Score every acyclic graph within the limits."""
    k = terms.k
    dags = _all_dags(k)
    allowed, required = (np.array(masks) for masks in limits.parent_masks)
    dags = dags[((dags & ~allowed) == 0).all(axis=1) & ((dags & required) == required).all(axis=1)]
    total = np.zeros(len(dags))
    for i in range(k):
        for j in range(i + 1, k):
            parents, which = np.unique(dags[:, [i, j]], axis=0, return_inverse=True)
            costs = [terms.pair(i, int(a), j, int(b)) for a, b in parents]
            total += np.array(costs)[which.reshape(-1)]
    return {tuple(map(int, dag)): float(score) for dag, score in zip(dags, total, strict=True)}


def local_scores(
    terms: IndependenceScore,
    limits: GraphConstraints,
    *,
    rng: np.random.Generator,
    on_stage: Callable[[], None] = lambda: None,
) -> Scores:
    """Score the graphs visited by hill climbing from `required_only`, then from perturbed best graphs.

    Finally each edge of the best graph is reversed and fixed, and the search is repeated: the confidence
    of an edge depends on the best graph without it.
    """
    scores: Scores = {}
    best = climb(terms, limits, limits.required_only(), scores)
    on_stage()
    for _ in range(RESTARTS):
        found = climb(terms, limits, _perturbed(best, limits, rng), scores)
        best = min(best, found, key=scores.__getitem__)
        on_stage()
    for child, parents in enumerate(best):
        for cause in _bits(parents):
            turned = _turned(best, cause, child)
            held = limits.without(cause, child)
            if held.permits(turned) and is_acyclic(turned):
                climb(terms, held, turned, scores)
    on_stage()
    return scores


def climb(terms: IndependenceScore, limits: GraphConstraints, start: Dag, scores: Scores) -> Dag:
    """Apply the best change of a single edge until none is better; adds visited graphs to `scores`."""
    best = start
    scores.setdefault(best, terms.score(best))
    while True:
        better = best
        for dag in neighbours(best, limits):
            if dag not in scores:
                scores[dag] = scores[best] + terms.change(best, dag)
            better = min(better, dag, key=scores.__getitem__)
        if better == best:
            return best
        best = better


def neighbours(dag: Dag, limits: GraphConstraints) -> Iterator[Dag]:
    """Graphs within the limits that differ in one edge: added, removed or turned."""
    for child in range(len(dag)):
        for cause in range(len(dag)):
            if cause == child:
                continue
            changed = _with_parents(dag, child, dag[child] ^ (1 << cause))
            options = [changed]
            if dag[child] >> cause & 1:
                options.append(_turned(dag, cause, child))
            yield from (d for d in options if limits.permits(d) and is_acyclic(d))


def is_acyclic(dag: Dag) -> bool:
    """Whether nodes without parents can be taken away until none is left.

    >>> is_acyclic((0b10, 0b00)), is_acyclic((0b10, 0b01))
    (True, False)
    """
    left = (1 << len(dag)) - 1
    while left:
        roots = sum(1 << i for i in _bits(left) if not dag[i] & left)
        if not roots:
            return False
        left ^= roots
    return True


def adjacency(dag: Dag) -> NDArray[np.bool_]:
    """(k, k) True where row causes column.

    >>> adjacency((0b10, 0b00))
    array([[False, False],
           [ True, False]])
    """
    nodes = np.arange(len(dag))
    return (np.array(dag, dtype=object)[None, :] >> nodes[:, None] & 1).astype(bool)


@cache
def _all_dags(k: int) -> NDArray[np.int64]:
    candidates = [[s for s in range(1 << k) if not s >> i & 1] for i in range(k)]
    dags = np.stack(np.meshgrid(*candidates, indexing="ij"), axis=-1).reshape(-1, k)
    left = np.full(len(dags), (1 << k) - 1)
    for _ in range(k):
        removable = np.zeros_like(left)
        for i in range(k):
            removable |= np.where((dags[:, i] & left) == 0, 1 << i, 0)
        left &= ~removable
    return np.asarray(dags[left == 0], dtype=np.int64)


def _perturbed(dag: Dag, limits: GraphConstraints, rng: np.random.Generator) -> Dag:
    for _ in range(len(dag)):
        options = list(neighbours(dag, limits))
        if options:
            dag = options[rng.integers(len(options))]
    return dag


def _turned(dag: Dag, cause: int, child: int) -> Dag:
    without = _with_parents(dag, child, dag[child] & ~(1 << cause))
    return _with_parents(without, cause, without[cause] | 1 << child)


def _with_parents(dag: Dag, child: int, parents: int) -> Dag:
    return (*dag[:child], parents, *dag[child + 1 :])


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


MOST_EVIDENCE = 1000
"""More rows than this make no surer: models are never true to the last nat."""

MISFIT = 2.0


def edge_confidence(terms: IndependenceScore, scores: Scores) -> FloatArray:
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
            odds = np.exp(logits - logits.max())
            confidence[i, j], confidence[j, i] = odds[:2] / odds.sum()
    return confidence


def jackknife(without: FloatArray) -> float:
    """Standard deviation of an estimate by the jackknife over groups of rows.

    Reference: Bias and confidence in not-quite large samples, J. Tukey, 1958.

    >>> round(jackknife(np.array([1.0, 2.0, 3.0])), 3)  # sqrt(2/3 * 2)
    1.155
    """
    groups = len(without)
    return float(without.std() * math.sqrt(groups - 1))


def _evidence_cost(terms: IndependenceScore, dag: Dag) -> float:
    return terms.dependence(dag) + terms.edge_cost * sum(parents.bit_count() for parents in dag)
