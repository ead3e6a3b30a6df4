"""Figures of learnt and true causal graphs."""

from __future__ import annotations

from typing import Literal, NamedTuple

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from disentwine.causal.graph import Edge, Graph
from disentwine.errors import UsageError
from disentwine.figures.graph_layout import (
    LETTER,
    TextBox,
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

LEGEND, LABEL_HEIGHT = 40, 36
"""Heights in pixels: of the legend, and of an edge label."""


class EdgeStyle(NamedTuple):
    """Legend label, colour and dashes of an edge."""

    label: str
    colour: str
    dash: Literal["solid", "dashed"] = "solid"


LEARNT = EdgeStyle("learnt", BLUE)
CORRECT = EdgeStyle("correct", BLUE)
EXTRA = EdgeStyle("extra", ORANGE)
MISSING = EdgeStyle("missing", PINK, "dashed")
TRUE = EdgeStyle("true", INK)


def graph_figure(learnt: Graph | nx.DiGraph, truth: Graph | nx.DiGraph | None = None) -> Figure:
    """The learnt graph, and the true graph if known; causes are above their effects.

    Learnt edges are labelled with their weight and confidence in percent. A reversed edge counts as one
    extra and one missing edge.

    Arguments:
        learnt: edges may have a "weight" and a "confidence".
        truth: graph of the same nodes.

    >>> light = Graph(("light", "shadow"), [[0, 0.5], [0, 0]], [[0, 0.97], [0, 0]])
    >>> [text.get_text() for text in graph_figure(light).axes[0].texts]
    ['learnt', 'light', 'shadow', '0.50 (97%)']
    """
    found = _networkx(learnt)
    true = None if truth is None else _networkx(truth)
    if true is not None and set(true.nodes) != set(found.nodes):
        raise UsageError(f"truth has nodes {sorted(true.nodes)}, learnt {sorted(found.nodes)}")
    if not found.nodes:
        raise UsageError("the graph has no nodes")
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
        edges = _styles(found, true) if graph is found else dict.fromkeys(graph.edges, TRUE)
        _add_graph(axes, boxes, edges, {} if graph is true else _labels(found))
        if true is not None and graph is found:
            _legend(figure, list(dict.fromkeys(edges.values())))
    return figure


def _networkx(graph: Graph | nx.DiGraph) -> nx.DiGraph:
    return graph.to_networkx() if isinstance(graph, Graph) else graph


def _styles(found: nx.DiGraph, true: nx.DiGraph | None) -> dict[Edge, EdgeStyle]:
    """Edges of the panel of the learnt graph, and their styles."""
    if true is None:
        return dict.fromkeys(found.edges, LEARNT)
    styles = {edge: CORRECT if true.has_edge(*edge) else EXTRA for edge in found.edges}
    return styles | {edge: MISSING for edge in true.edges if not found.has_edge(*edge)}


def _labels(found: nx.DiGraph) -> dict[Edge, str]:
    """Weight and confidence of each edge, if known."""
    labels = {}
    for cause, effect, known in found.edges(data=True):
        weight, confidence = known.get("weight"), known.get("confidence")
        shown = [] if weight is None else [f"{weight:.2f}"]
        shown += [] if confidence is None else [f"({100 * confidence:.0f}%)"]
        labels[cause, effect] = " ".join(shown)
    return labels


def _add_graph(
    axes: Axes, boxes: dict[str, TextBox], edges: dict[Edge, EdgeStyle], labels: dict[Edge, str]
) -> None:
    patches = {name: _node(axes, name, box) for name, box in boxes.items()}
    taken = list(boxes.values())
    for edge, style in edges.items():
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
            color=style.colour,
            linewidth=1.8,
            linestyle=style.dash,
            zorder=1,
        )
        axes.add_patch(arrow)
        text = labels.get(edge, "")
        if text:
            size = LETTER * len(text), LABEL_HEIGHT
            x, y = free_place(curve(start, end, bend), *size, taken)
            taken.append(TextBox(x, y, *size))
            ground = {"facecolor": PAPER, "edgecolor": HAIRLINE, "linewidth": 0.6, "pad": 2.5}
            label = axes.text(x, y, text, bbox=ground, zorder=3, ha="center", va="center")
            label.set(size=SMALL, color=style.colour)


def _node(axes: Axes, name: str, box: TextBox) -> FancyBboxPatch:
    corner = box.x - box.width / 2, box.y - box.height / 2
    style = "round,pad=0,rounding_size=14"
    patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=style)
    patch.set(facecolor=PAPER, edgecolor=QUIET, linewidth=1.0, zorder=2)
    axes.add_patch(patch)
    words = "\n".join(lines(name, box.width))
    text = axes.text(box.x, box.y, words, ha="center", va="center", parse_math=False)
    text.set(size=LABEL, color=INK)
    return patch


def _legend(figure: Figure, styles: list[EdgeStyle]) -> None:
    figure.legend(
        handles=[
            Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=1.8, label=s.label)
            for s in styles
        ],
        loc="lower left",
        ncols=3,
        frameon=False,
        fontsize=LABEL,
        labelcolor=INK,
    )
