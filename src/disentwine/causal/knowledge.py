"""What is known of a graph before it is learnt."""

from __future__ import annotations

from dataclasses import dataclass

from disentwine.causal.graph import Edge
from disentwine.contracts.ranges import NonNegativeInt


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge that learning a graph starts from, as `discover` takes it.

    Arguments:
        required: edges (cause, effect) that the graph must have.
        forbidden: edges that it must not have.
        tiers: groups of names; no edge leads from a later group to an earlier one.
        bootstrap: average the confidence of edges over so many resamples; 0 for none.

    >>> Knowledge(tiers=(("light", "angle"), ("shadow",)), forbidden=(("light", "angle"),)).bootstrap
    0
    """

    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    bootstrap: NonNegativeInt = 0


NOTHING = Knowledge()
"""Everything about the graph is left to the data."""
