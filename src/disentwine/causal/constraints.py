"""Prior knowledge of a graph, and constraints on the search as masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from disentwine.causal.graph import Edge, edge_matrix, find_cycle
from disentwine.causal.independence_score import Dag
from disentwine.core.dataset import column_index
from disentwine.core.types import NonNegativeInt
from disentwine.errors import UsageError


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge of a graph, as `discover` takes it.

    Arguments:
        required: edges (cause, effect) that the graph must have.
        forbidden: edges that it must not have.
        tiers: groups of names; no edge leads from a later group to an earlier one.
        bootstrap: number of resamples over which the confidence of edges is averaged; 0 for none.

    >>> Knowledge(tiers=(("light", "angle"), ("shadow",)), forbidden=(("light", "angle"),)).bootstrap
    0
    """

    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    bootstrap: NonNegativeInt = 0


NO_KNOWLEDGE = Knowledge()
"""No prior knowledge."""


@dataclass(frozen=True)
class GraphConstraints:
    """Constraints on graphs from prior knowledge.

    Arguments:
        allowed: (k, k) True where row may cause column.
        required: (k, k) True where row must cause column.
    """

    allowed: NDArray[np.bool_]
    required: NDArray[np.bool_]

    @cached_property
    def parent_masks(self) -> tuple[Dag, Dag]:
        """Allowed and required parents of each node as bit masks."""
        return bits_of_columns(self.allowed), bits_of_columns(self.required)

    def required_only(self) -> Dag:
        """The graph with the required edges only."""
        return self.parent_masks[1]

    def permits(self, dag: Dag) -> bool:
        """Whether a graph satisfies the constraints."""
        return all(
            not parents & ~allowed and parents & required == required
            for parents, allowed, required in zip(dag, *self.parent_masks, strict=True)
        )

    def without(self, cause: int, effect: int) -> GraphConstraints:
        """The same constraints with one more forbidden edge."""
        allowed = self.allowed.copy()
        allowed[cause, effect] = False
        return GraphConstraints(allowed, self.required)


def build_constraints(
    names: tuple[str, ...],
    *,
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    tiers: Sequence[Sequence[str]] = (),
) -> GraphConstraints:
    """Constraints from prior knowledge; contradictions raise `UsageError`.

    Arguments:
        names: of the nodes.
        required: edges (cause, effect) that the graph must have.
        forbidden: edges that it must not have.
        tiers: groups of names; no edge leads from a later to an earlier one. Names in no
            group are not constrained.

    >>> build_constraints(("age", "beard"), tiers=[["age"], ["beard"]]).allowed
    array([[False,  True],
           [False, False]])
    """
    required_edges = edge_matrix(names, required, "required")
    forbidden_edges = edge_matrix(names, forbidden, "forbidden")
    backward = _against_tiers(names, tiers)
    for matrix, reason in (
        (forbidden_edges, "forbidden"),
        (backward, "against the order of the tiers"),
    ):
        if (required_edges & matrix).any():
            cause, effect = np.argwhere(required_edges & matrix)[0]
            raise UsageError(f"required: {names[cause]} -> {names[effect]} is also {reason}")
    if cycle := find_cycle(required_edges):
        path = " -> ".join(names[i] for i in cycle)
        raise UsageError(f"required: the edges make a cycle, {path}; remove one of them")
    not_allowed = forbidden_edges | backward | np.eye(len(names), dtype=bool)
    return GraphConstraints(~not_allowed, required_edges)


def bits_of_columns(matrix: NDArray[np.bool_]) -> Dag:
    """Each column of a mask as one integer, the bits of its True rows set."""
    return tuple(sum(1 << int(i) for i in np.flatnonzero(column)) for column in matrix.T)


def _against_tiers(names: tuple[str, ...], tiers: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """(k, k) True for edges from a later tier to an earlier one."""
    tier_of: dict[int, int] = {}
    for tier, members in enumerate(tiers):
        if isinstance(members, str):
            raise UsageError(f"tiers: {members!r} is no list of names; write [[...], [...]]")
        for name in members:
            node = column_index(names, name)
            if node in tier_of:
                raise UsageError(f"tiers: '{name}' is given twice")
            tier_of[node] = tier
    backward = np.zeros((len(names), len(names)), dtype=bool)
    for cause in tier_of:
        for effect in tier_of:
            backward[cause, effect] = tier_of[cause] > tier_of[effect]
    return backward
