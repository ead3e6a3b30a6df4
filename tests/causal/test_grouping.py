"""Concepts are painted together exactly when pixels need them together."""

from typing import Any

import numpy as np
import pytest

from disentwine.causal import Graph
from disentwine.causal.grouping import group_concepts
from disentwine.data import Flow, Pendulum


@pytest.mark.parametrize("size", [32, 64, 96])
@pytest.mark.parametrize(
    ("build", "groups"),
    [
        (Pendulum, {("pendulum_angle",), ("light_angle",), ("shadow_length", "shadow_position")}),
        (Flow, {("ball_size",), ("water_height",), ("hole", "flow")}),
    ],
)
def test_the_drawn_scenes_fall_into_their_parts(
    build: Any, groups: set[tuple[str, ...]], size: int
) -> None:
    """Though any two labels of the pendulum determine the others."""
    dataset = build(size=size)
    some = np.random.default_rng(0).permutation(dataset.split["train"])[:2000]
    pixels = dataset.images[some].mean(axis=-1).reshape(len(some), -1) / 255
    graph = Graph.from_networkx(dataset.graph, dataset.names)
    found = group_concepts(dataset.factors[some], pixels, graph).groups
    assert {tuple(dataset.names[i] for i in group) for group in found} == groups


def test_overlapping_sets_are_merged_and_unseen_concepts_stand_alone() -> None:
    u = np.random.default_rng(0).uniform(-1, 1, (1200, 4))
    pixels = np.stack([u[:, 0] * u[:, 1], u[:, 1] * u[:, 2], u[:, 1]], axis=1)
    graph = Graph.from_edges(tuple("abcd"), [])
    found = group_concepts(u, pixels, graph)
    assert found.groups == ((0, 1, 2), (3,))
    assert found.owner.tolist() == [0, 0, 0]
