"""Figures of graphs: what causes what, as learnt and as it is."""

from __future__ import annotations

from typing import Literal, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from disentwine.causal.graph import Graph
from disentwine.errors import UsageError
from disentwine.figures.graph_layout import (
    LETTER,
    Box,
    curve,
    free_bend,
    free_place,
    lines,
    place,
    tiers,
)
from disentwine.figures.style import (
    BLUE,
    HAIRLINE,
    INK,
    LABEL,
    ORANGE,
    PAPER,
    PINK,
    QUIET,
    SMALL,
    TITLE,
    WIDTH,
    new_figure,
)

Edge = tuple[str, str]
LEGEND, LABEL_HEIGHT = 40, 36
"""Pixels: of the legend, and of an edge's label."""


class Kind(NamedTuple):
    """How an edge is drawn."""

    label: str
    colour: str
    dash: Literal["solid", "dashed"] = "solid"


LEARNT = Kind("learnt", BLUE)
RIGHT = Kind("learnt, and true", BLUE)
EXTRA = Kind("learnt, but not there", ORANGE)
MISSING = Kind("there, but not learnt", PINK, "dashed")
TRUE = Kind("true", INK)


def graph_figure(learnt: Graph | nx.DiGraph, truth: Graph | nx.DiGraph | None = None) -> Figure:
    """The learnt graph, beside the true one where it is known; causes stand above their effects.

    On each learnt edge is its weight and, where there is one, its confidence in per cent. An edge
    that was turned round shows as one that is not there and one that was not learnt.

    Arguments:
        learnt: a graph; edges may have a "weight" and a "confidence".
        truth: over the same nodes.

    >>> light = Graph(("light", "shadow"), [[0, 0.5], [0, 0]], [[0, 0.97], [0, 0]])
    >>> [text.get_text() for text in graph_figure(light).axes[0].texts]
    ['learnt', 'light', 'shadow', '0.50 (97%)']
    """
    found = _networkx(learnt)
    true = None if truth is None else _networkx(truth)
    if true is not None and set(true.nodes) != set(found.nodes):
        raise UsageError(f"truth has nodes {sorted(true.nodes)}, learnt {sorted(found.nodes)}")
    if not found.nodes:
        raise UsageError("there are no nodes to draw")
    width = WIDTH / 2
    boxes, height = place(tiers(found if true is None else true), width)
    if true is not None:
        boxes = {name: box._replace(y=box.y + LEGEND) for name, box in boxes.items()}
        height += LEGEND
    figure = new_figure(width if true is None else WIDTH, height)
    panels = [("learnt", found)] + ([] if true is None else [("true", true)])
    for number, (title, graph) in enumerate(panels):
        axes = figure.add_axes((number / len(panels), 0, 1 / len(panels), 1))
        axes.set(xlim=(0, width), ylim=(0, height))
        axes.set_axis_off()
        axes.text(24, height - 40, title, size=TITLE, color=INK, va="center")
        edges = _kinds(found, true) if graph is found else dict.fromkeys(graph.edges, TRUE)
        _draw(axes, boxes, edges, {} if graph is true else _labels(found))
        if true is not None and graph is found:
            _legend(figure, list(dict.fromkeys(edges.values())))
    return figure


def _networkx(graph: Graph | nx.DiGraph) -> nx.DiGraph:
    return graph.to_networkx() if isinstance(graph, Graph) else graph


def _kinds(found: nx.DiGraph, true: nx.DiGraph | None) -> dict[Edge, Kind]:
    """Every edge to draw in the learnt graph, and as what."""
    if true is None:
        return dict.fromkeys(found.edges, LEARNT)
    kinds = {edge: RIGHT if true.has_edge(*edge) else EXTRA for edge in found.edges}
    return kinds | {edge: MISSING for edge in true.edges if not found.has_edge(*edge)}


def _labels(found: nx.DiGraph) -> dict[Edge, str]:
    """Weight and confidence of each edge, as far as they are known."""
    labels = {}
    for cause, effect, known in found.edges(data=True):
        weight, sure = known.get("weight"), known.get("confidence")
        shown = [] if weight is None else [f"{weight:.2f}"]
        shown += [] if sure is None else [f"({100 * sure:.0f}%)"]
        labels[cause, effect] = " ".join(shown)
    return labels


def _draw(
    axes: Axes, boxes: dict[str, Box], edges: dict[Edge, Kind], labels: dict[Edge, str]
) -> None:
    patches = {name: _node(axes, name, box) for name, box in boxes.items()}
    taken = list(boxes.values())
    for edge, kind in edges.items():
        start, end = (np.array(boxes[name][:2]) for name in edge)
        others = [box for name, box in boxes.items() if name not in edge]
        bend = free_bend(start, end, others, bent=edge[::-1] in edges)
        arrow = FancyArrowPatch(
            tuple(start),
            tuple(end),
            connectionstyle=f"arc3,rad={bend}",
            patchA=patches[edge[0]],
            patchB=patches[edge[1]],
            arrowstyle="-|>,head_length=6,head_width=3",
            color=kind.colour,
            linewidth=1.8,
            linestyle=kind.dash,
            zorder=1,
        )
        axes.add_patch(arrow)
        text = labels.get(edge, "")
        if text:
            size = LETTER * len(text), LABEL_HEIGHT
            x, y = free_place(curve(start, end, bend), *size, taken)
            taken.append(Box(x, y, *size))
            ground = {"facecolor": PAPER, "edgecolor": HAIRLINE, "linewidth": 0.6, "pad": 2.5}
            writing = axes.text(x, y, text, bbox=ground, zorder=3, ha="center", va="center")
            writing.set(size=SMALL, color=kind.colour)


def _node(axes: Axes, name: str, box: Box) -> FancyBboxPatch:
    corner = box.x - box.width / 2, box.y - box.height / 2
    style = "round,pad=0,rounding_size=14"
    patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=style)
    patch.set(facecolor=PAPER, edgecolor=QUIET, linewidth=1.0, zorder=2)
    axes.add_patch(patch)
    words = "\n".join(lines(name, box.width))
    text = axes.text(box.x, box.y, words, ha="center", va="center", parse_math=False)
    text.set(size=LABEL, color=INK)
    return patch


def _legend(figure: Figure, kinds: list[Kind]) -> None:
    figure.legend(
        handles=[
            Line2D([], [], color=kind.colour, linestyle=kind.dash, linewidth=1.8, label=kind.label)
            for kind in kinds
        ],
        loc="lower left",
        ncols=3,
        frameon=False,
        fontsize=LABEL,
        labelcolor=INK,
    )
