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

MAX_EXHAUSTIVE = 5
"""Largest number of nodes for exhaustive search: 29,281 graphs of five nodes, 3.8 million of six."""

RESTARTS = 10

LOCAL_STAGES = RESTARTS + 2

GraphScores = dict[Dag, float]
"""GraphScores of all graphs that were visited."""


def all_scores(score: IndependenceScore, constraints: GraphConstraints) -> GraphScores:
    """Score every acyclic graph that satisfies the constraints."""
    k = score.k
    dags = _all_dags(k)
    allowed, required = (np.array(masks) for masks in constraints.parent_masks)
    dags = dags[((dags & ~allowed) == 0).all(axis=1) & ((dags & required) == required).all(axis=1)]
    total = np.zeros(len(dags))
    for i in range(k):
        for j in range(i + 1, k):
            parents, which = np.unique(dags[:, [i, j]], axis=0, return_inverse=True)
            costs = [score.pair(i, int(a), j, int(b)) for a, b in parents]
            total += np.array(costs)[which.reshape(-1)]
    return {tuple(map(int, dag)): float(sum_) for dag, sum_ in zip(dags, total, strict=True)}


def local_scores(
    score: IndependenceScore,
    constraints: GraphConstraints,
    *,
    rng: np.random.Generator,
    on_stage: Callable[[], None] = lambda: None,
) -> GraphScores:
    """Score the graphs visited by hill climbing from `required_only`, then from perturbed best graphs.

    Finally the search is repeated from the best graph with each of its edges reversed and forbidden, as
    the confidence of an edge depends on the best graph without it.
    """
    scores: GraphScores = {}
    best = climb(score, constraints, constraints.required_only(), scores)
    on_stage()
    for _ in range(RESTARTS):
        found = climb(score, constraints, _perturbed(best, constraints, rng), scores)
        best = min(best, found, key=scores.__getitem__)
        on_stage()
    for child, parents in enumerate(best):
        for cause in _bits(parents):
            start = _reversed(best, cause, child)
            without_edge = constraints.without(cause, child)
            if without_edge.permits(start) and is_acyclic(start):
                climb(score, without_edge, start, scores)
    on_stage()
    return scores


def climb(
    score: IndependenceScore, constraints: GraphConstraints, start: Dag, scores: GraphScores
) -> Dag:
    """Hill climbing by changes of a single edge; adds visited graphs to `scores`."""
    best = start
    scores.setdefault(best, score.score(best))
    while True:
        better = best
        for dag in neighbours(best, constraints):
            if dag not in scores:
                scores[dag] = scores[best] + score.change(best, dag)
            better = min(better, dag, key=scores.__getitem__)
        if better == best:
            return best
        best = better


def neighbours(dag: Dag, constraints: GraphConstraints) -> Iterator[Dag]:
    """Graphs within the constraints that differ in one edge: added, removed or reversed."""
    for child in range(len(dag)):
        for cause in range(len(dag)):
            if cause == child:
                continue
            changed = _with_parents(dag, child, dag[child] ^ (1 << cause))
            options = [changed]
            if dag[child] >> cause & 1:
                options.append(_reversed(dag, cause, child))
            yield from (d for d in options if constraints.permits(d) and is_acyclic(d))


def is_acyclic(dag: Dag) -> bool:
    """Whether a graph is acyclic: roots can be removed until no node is left.

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


def _perturbed(dag: Dag, constraints: GraphConstraints, rng: np.random.Generator) -> Dag:
    for _ in range(len(dag)):
        options = list(neighbours(dag, constraints))
        if options:
            dag = options[rng.integers(len(options))]
    return dag


def _reversed(dag: Dag, cause: int, child: int) -> Dag:
    without = _with_parents(dag, child, dag[child] & ~(1 << cause))
    return _with_parents(without, cause, without[cause] | 1 << child)


def _with_parents(dag: Dag, child: int, parents: int) -> Dag:
    return (*dag[:child], parents, *dag[child + 1 :])


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


MAX_EVIDENCE = 1000
"""Number of rows beyond which confidence does not increase, as models are approximations."""

MISFIT = 2.0


def edge_confidence(score: IndependenceScore, scores: GraphScores) -> FloatArray:
    r"""Confidence (k, k) of each edge [cause, effect] against its reverse and its absence.

    For each pair of nodes let $g$ be the best scored graph with the edge, with its reverse, or with
    neither, and $\Delta_g$ its dependence plus edge costs relative to the best graph of all. The
    confidence is the softmax of $-\Delta_g / \tau_g$ over the three graphs, with

    $$\tau_g^2 = 1 / \min(n, 1000)^2 + \mathrm{sd}(\Delta_g)^2 + [2 (D - \lambda)_+]^2.$$

    The temperature accounts for noise: where two directions are equally good, as in a linear model
    with Gaussian noise, scores differ by about sd, a jackknife estimate over groups of rows. Where the
    dependence D of the best graph exceeds the cost $\lambda$ of an edge, noise is not additive, and
    small differences are not significant. The higher cost of dependent causes is left out, as it is a
    preference and not evidence.

    Arguments:
        score: the score on the data.
        scores: scores of the visited graphs.
    """
    dags = list(scores)
    totals = np.array([scores[dag] for dag in dags])
    edges = np.stack([adjacency(dag) for dag in dags])
    best = dags[int(totals.argmin())]
    floor = 1 / min(score.n, MAX_EVIDENCE)
    misfit = MISFIT * max(score.dependence(best) - score.edge_cost, 0.0)
    best_groups = score.dependence_without_groups(best)

    def evidence(members: NDArray[np.bool_]) -> float:
        if not members.any():
            return -math.inf
        dag = dags[int(np.argmin(np.where(members, totals, np.inf)))]
        gap = _evidence_cost(score, dag) - _evidence_cost(score, best)
        noise = jackknife(score.dependence_without_groups(dag) - best_groups)
        return -gap / math.hypot(floor, noise, misfit)

    confidence = np.zeros((score.k, score.k))
    for i in range(score.k):
        for j in range(i + 1, score.k):
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


def _evidence_cost(score: IndependenceScore, dag: Dag) -> float:
    return score.dependence(dag) + score.edge_cost * sum(parents.bit_count() for parents in dag)
