"""Figures of graphs and of how they are learnt say what was given, and nothing else."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from disentwine.causal import Graph
from disentwine.errors import UsageError
from disentwine.figures import (
    adjacency_over_training,
    effect_matrix_figure,
    graph_figure,
    to_png_bytes,
)
from disentwine.figures.graph_layout import TextBox, curve, free_bend, free_place, tiers
from disentwine.figures.graphs import CORRECT, EXTRA, MISSING, TRUE
from disentwine.figures.style import BLUE, ORANGE

NAMES = ("pendulum_angle", "light_angle", "shadow_length", "shadow_position")
TRUTH = nx.DiGraph((cause, effect) for cause in NAMES[:2] for effect in NAMES[2:])


def colours(axes: Axes) -> list[str]:
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return sorted(to_hex(arrow.get_edgecolor()) for arrow in arrows)


def of_kinds(*kinds: Any) -> list[str]:
    return sorted(kind.colour.lower() for kind in kinds)


def test_right_extra_and_missing_edges_have_their_colours() -> None:
    edges = [*list(TRUTH.edges)[:3], ("shadow_length", "shadow_position")]
    learnt, true = graph_figure(Graph.from_edges(NAMES, edges), TRUTH).axes
    assert colours(learnt) == of_kinds(CORRECT, CORRECT, CORRECT, EXTRA, MISSING)
    assert colours(true) == of_kinds(TRUE, TRUE, TRUE, TRUE)


def test_a_turned_edge_shows_both_ways_and_apart() -> None:
    learnt = graph_figure(nx.DiGraph([("b", "a")]), nx.DiGraph([("a", "b")])).axes[0]
    assert colours(learnt) == of_kinds(EXTRA, MISSING)
    bends = [
        patch.get_connectionstyle().rad
        for patch in learnt.patches
        if isinstance(patch, FancyArrowPatch)
    ]
    assert bends[0] == bends[1] != 0  # as seen from where each of them starts


def test_edges_say_weight_and_confidence_and_causes_stand_above() -> None:
    weights, confidence = np.zeros((2, 4, 4))
    weights[0, 2], confidence[0, 2], weights[1, 3], confidence[1, 3] = 0.25, 0.5, 1.5, 0.999
    axes = graph_figure(Graph(NAMES, weights, confidence)).axes
    assert len(axes) == 1
    texts = {text.get_text(): text for text in axes[0].texts}
    assert {"0.25 (50%)", "1.50 (100%)"} <= set(texts)
    for cause, effect in (("pendulum angle", "shadow length"), ("light angle", "shadow position")):
        assert texts[cause].get_position()[1] > texts[effect].get_position()[1]
    bare = graph_figure(nx.DiGraph([("a", "b")])).axes[0]
    assert [text.get_text() for text in bare.texts] == ["learnt", "a", "b"]


def test_every_node_has_its_own_place_whatever_the_graph() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 2, 5, 9):
        names = tuple(f"concept_number_{i}" for i in range(k))
        graph = Graph(names, np.triu(rng.random((k, k)) < 0.4, 1))
        rows = tiers(graph.to_networkx())
        assert sorted(name for row in rows for name in row) == sorted(names)
        rank = {name: i for i, row in enumerate(rows) for name in row}
        assert all(rank[cause] < rank[effect] for cause, effect in graph.edges)
        figure = graph_figure(graph, graph.to_networkx())
        assert to_png_bytes(figure) == to_png_bytes(graph_figure(graph, graph.to_networkx()))


@pytest.mark.parametrize(
    "names",
    [
        [f"attribute_{i}" for i in range(40)],
        [f"a_rather_long_name_of_a_concept_{i}" for i in range(11)] + ["W" * 34],
        ["an_even_longer_name_that_goes_on_and_on_" * 3 + str(i) for i in range(3)],
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_boxes_of_many_nodes_stay_apart_and_inside(names: list[str], known: bool) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    figure = graph_figure(graph, graph if known else None)
    to_png_bytes(figure)
    for axes in figure.axes:
        boxes = [p.get_window_extent() for p in axes.patches if isinstance(p, FancyBboxPatch)]
        title, *texts = (text.get_window_extent() for text in axes.texts)
        assert len(boxes) == len(texts) == len(names)
        panel = axes.get_window_extent()
        placed = [*boxes, title]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in placed[i + 1 :])
            assert panel.x0 < box.x0 < box.x1 < panel.x1
            assert panel.y0 < box.y0 < box.y1 < panel.y1
            if "W" not in names[i]:
                assert box.x0 < texts[i].x0 < texts[i].x1 < box.x1
            assert box.y0 < texts[i].y0 < texts[i].y1 < box.y1


def test_of_many_causes_those_with_effects_stand_next_to_them() -> None:
    graph = nx.DiGraph([("cause_0", "effect")])
    graph.add_nodes_from(f"cause_{i}" for i in range(1, 12))
    texts = {t.get_text(): t.get_position()[1] for t in graph_figure(graph).axes[0].texts}
    heights = [texts[f"cause {i}"] for i in range(12)]
    assert len(set(heights)) == 3
    assert heights[0] == min(heights) > texts["effect"]


def test_edges_go_round_nodes_and_labels_apart() -> None:
    start, end = np.array([0.0, 0.0]), np.array([0.0, 400.0])
    node = TextBox(0, 200, 100, 50)
    assert free_bend(start, end, []) == 0
    bent = curve(start, end, free_bend(start, end, [node]))
    inside = (np.abs(bent - [node.x, node.y]) < [node.width / 2, node.height / 2]).all(axis=1)
    assert not inside.any()
    straight = curve(start, end, 0.0)
    first = TextBox(*free_place(straight, 80, 36, []), 80, 36)
    assert not first.touches(TextBox(*free_place(straight, 80, 36, [first]), 80, 36))


PATH = np.zeros((11, 4, 4))
PATH[:, 0, 2] = np.linspace(0, 0.8, 11)
PATH[:, 3, 1] = np.linspace(0, -0.4, 11)


def test_a_over_training_shows_steps_lines_and_truth() -> None:
    truth = nx.to_numpy_array(TRUTH, nodelist=NAMES)
    steps = list(range(0, 110, 10))
    figure = adjacency_over_training(steps, PATH, names=NAMES, truth=truth)
    *maps, lines = figure.axes
    titles = [axes.get_title(loc="left") for axes in maps]
    assert titles == ["step 0", "step 30", "step 70", "step 100", "true"]
    assert maps[3].images[0].get_array()[3, 1] == pytest.approx(0.4)
    plotted = {line.get_color(): line.get_ydata() for line in lines.get_lines()}
    np.testing.assert_allclose(plotted[BLUE], PATH[:, 0, 2])
    np.testing.assert_allclose(plotted[ORANGE], PATH[:, 3, 1])
    named = [text.get_text() for text in lines.texts]
    assert named == ["shadow position → light angle", "pendulum angle → shadow length"]


def test_effects_leave_unknown_cells_empty() -> None:
    expected = np.array([[1.0, np.nan], [0.0, 1.0]])
    zero = np.zeros((2, 2))
    figure = effect_matrix_figure(
        expected=expected, actual=zero, error=expected, rows=NAMES[:2], columns=NAMES[:2]
    )
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00", "", "0.00", "1.00"]
    assert [text.get_text() for text in figure.axes[2].texts] == ["1.00", "", "0.00", "1.00"]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["do(pendulum angle)", "do(light angle)"]
    to_png_bytes(figure)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: graph_figure(nx.DiGraph()),
        lambda: graph_figure(TRUTH, nx.DiGraph([("a", "b")])),
        lambda: adjacency_over_training([0], PATH, names=NAMES),
        lambda: effect_matrix_figure(
            expected=[[1.0]], actual=[[1.0]], error=[[1.0, 2.0]], rows=["a"], columns=["a"]
        ),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        wrong()
