"""Layout of a DAG: positions of nodes, curvature of edges, positions of labels."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
TITLE_END, ABOVE, TIER, BELOW = 60, 130, 230, 70
"""In pixels: end of the title; least distance above, between and below the centres of tiers."""

BOX_WIDTH, LEAST_WIDTH, GAP, MARGIN, LINE, LETTER = 250, 150, 24, 10, 32, 14
"""In pixels: largest and least width of a box, gap, margin, height of a line, width of a letter."""

BENDS = (0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5, 0.7, -0.7)
ALONG = (0.36, 0.5, 0.64, 0.28, 0.72)
"""Positions of labels along an edge; edges that cross in the middle are still apart at a third."""


class TextBox(NamedTuple):
    """Rectangle around a text, given by its centre."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: TextBox) -> bool:
        near_x = abs(self.x - other.x) < (self.width + other.width) / 2
        return near_x and abs(self.y - other.y) < (self.height + other.height) / 2


def tiers(graph: nx.DiGraph) -> list[list[str]]:
    """Group nodes by the longest path from a root; roots are one tier above their first effect.

    Nodes with effects come last in a tier, so that they are lowest if it is split into rows.

    >>> tiers(nx.DiGraph([("ball", "height"), ("height", "flow"), ("hole", "flow")]))
    [['ball'], ['height', 'hole'], ['flow']]
    """
    rank = {n: i for i, tier in enumerate(nx.topological_generations(graph)) for n in tier}
    for name in graph.nodes:
        if not graph.in_degree(name) and graph.out_degree(name):
            rank[name] = min(rank[effect] for effect in graph.successors(name)) - 1
    nodes = sorted(graph.nodes, key=lambda name: graph.out_degree(name) > 0)
    return [[n for n in nodes if rank[n] == i] for i in range(max(rank.values()) + 1)]


def place(tiers: Sequence[Sequence[str]], width: float) -> tuple[dict[str, TextBox], float]:
    """Boxes of the nodes, and their total height; y increases upwards.

    A tier with too many nodes for legible boxes is split into rows.

    Arguments:
        tiers: names of the nodes, causes before their effects.
        width: of each row.

    >>> boxes, height = place([["ball"], ["height", "hole"]], 600)
    >>> boxes["hole"], height
    (TextBox(x=450.0, y=70.0, width=250, height=52), 430.0)
    """
    most = max(int(width // (LEAST_WIDTH + GAP)), 1)
    rows = [(row, 0 if i else TIER) for tier in tiers for i, row in enumerate(_rows(tier, most))]
    wide = min(BOX_WIDTH, width / max(len(row) for row, _ in rows) - GAP)
    boxes: dict[str, TextBox] = {}
    down, edge = float(ABOVE - TIER), float(TITLE_END)
    for row, apart in rows:
        heights = [LINE * len(lines(name, wide)) + 2 * MARGIN for name in row]
        half = max(heights) / 2
        down = max(down + apart, edge + GAP + half)
        edge = down + half
        for i, (name, high) in enumerate(zip(row, heights, strict=True)):
            boxes[name] = TextBox(width * (i + 0.5) / len(row), down, wide, high)
    height = max(down + BELOW, edge + GAP)
    return {name: box._replace(y=height - box.y) for name, box in boxes.items()}, height


def _rows(tier: Sequence[str], most: int) -> list[Sequence[str]]:
    """Split a tier into rows of similar length."""
    n = -(-len(tier) // most)
    return [tier[len(tier) * i // n : len(tier) * (i + 1) // n] for i in range(n)]


def lines(name: str, width: float) -> list[str]:
    """Name of a node, wrapped to the width of a box.

    >>> lines("shadow_position", 150)
    ['shadow', 'position']
    """
    letters = int((width - 2 * MARGIN) / LETTER)
    return textwrap.wrap(name.replace("_", " "), letters) or [name]


def curve(start: Points, end: Points, bend: float) -> Points:
    """Points (41, 2) along an edge of matplotlib's style "arc3": a quadratic Bezier curve."""
    t = np.linspace(0, 1, 41)[:, None]
    along = end - start
    middle = (start + end) / 2 + bend * np.array([along[1], -along[0]])
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end)


def free_bend(
    start: Points, end: Points, others: Collection[TextBox], *, bent: bool = False
) -> float:
    """The smallest bend with which an edge crosses the fewest other nodes.

    Arguments:
        start, end: centres of its nodes.
        others: boxes to avoid.
        bent: whether it must be bent, as for two edges in opposite directions.

    >>> free_bend(np.array([0.0, 0.0]), np.array([0.0, 90.0]), [TextBox(0, 45, 10, 10)])
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
    points: Points, width: float, height: float, taken: Collection[TextBox]
) -> tuple[float, float]:
    """Position along an edge where a label of this size overlaps the fewest boxes."""

    def place(t: float) -> TextBox:
        x, y = points[round(t * (len(points) - 1))]
        return TextBox(float(x), float(y), width, height)

    best = min(ALONG, key=lambda t: sum(place(t).touches(box) for box in taken))
    return place(best).x, place(best).y
