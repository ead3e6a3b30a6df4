"""Where the nodes of a graph stand, how its edges bend and where their labels fit, in pixels."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
BENDS = (0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5, 0.7, -0.7)
ALONG = (0.36, 0.5, 0.64, 0.28, 0.72)
"""A third of the way first, where edges that cross in the middle are still apart."""


class Box(NamedTuple):
    """A rectangle around its middle."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: Box) -> bool:
        near_x = abs(self.x - other.x) < (self.width + other.width) / 2
        return near_x and abs(self.y - other.y) < (self.height + other.height) / 2


def tiers(graph: nx.DiGraph) -> list[list[str]]:
    """Nodes by the longest way to them from a node without causes; those go down to their effects.

    >>> tiers(nx.DiGraph([("ball", "height"), ("height", "flow"), ("hole", "flow")]))
    [['ball'], ['height', 'hole'], ['flow']]
    """
    rank = {n: i for i, tier in enumerate(nx.topological_generations(graph)) for n in tier}
    for name in graph.nodes:
        if not graph.in_degree(name) and graph.out_degree(name):
            rank[name] = min(rank[effect] for effect in graph.successors(name)) - 1
    return [[n for n in graph.nodes if rank[n] == i] for i in range(max(rank.values()) + 1)]


def curve(start: Points, end: Points, bend: float) -> Points:
    """(41, 2) along the edge that matplotlib calls "arc3": a parabola through a bent middle."""
    t = np.linspace(0, 1, 41)[:, None]
    along = end - start
    middle = (start + end) / 2 + bend * np.array([along[1], -along[0]])
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end)


def free_bend(start: Points, end: Points, others: Collection[Box], *, bent: bool = False) -> float:
    """The least bend with which an edge runs through the fewest other nodes.

    Arguments:
        start, end: the middles of its nodes.
        others: what not to run through.
        bent: whether it must be bent, as where another edge leads back.

    >>> free_bend(np.array([0.0, 0.0]), np.array([0.0, 90.0]), [Box(0, 45, 10, 10)])
    0.35
    """

    def hits(bend: float) -> int:
        points = curve(start, end, bend)
        return sum(
            bool(
                (np.abs(points - [box.x, box.y]) < [box.width / 2 + 8, box.height / 2 + 8])
                .all(axis=1)
                .any()
            )
            for box in others
        )

    return min(BENDS[1:] if bent else BENDS, key=hits)


def free_place(
    points: Points, width: float, height: float, taken: Collection[Box]
) -> tuple[float, float]:
    """Where along an edge a label of this size touches the fewest of what is there already."""

    def place(t: float) -> Box:
        x, y = points[round(t * (len(points) - 1))]
        return Box(float(x), float(y), width, height)

    best = min(ALONG, key=lambda t: sum(place(t).touches(box) for box in taken))
    return place(best).x, place(best).y
