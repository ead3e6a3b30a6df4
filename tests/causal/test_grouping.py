"""Concepts are painted together exactly when pixels need them together."""

from typing import Any

import numpy as np
import pytest

from disentwine.causal import Graph
from disentwine.causal.grouping import RARE, group_concepts, varied_rows
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


@pytest.mark.parametrize("noise", [0.1, 0.15])
def test_an_effect_that_nearly_determines_its_cause_does_not_take_its_pixels(noise: float) -> None:
    rng = np.random.default_rng(0)
    a, own = rng.uniform(-1, 1, 2000), rng.normal(size=2000)
    b = 2 * a + a**3
    b += noise * b.std() * own
    pixels = np.stack([a, np.tanh(2 * a), b, np.tanh(b)], axis=1) + 0.01 * rng.normal(
        size=(2000, 4)
    )
    assert np.corrcoef(a, b)[0, 1] ** 2 > 0.95
    found = group_concepts(
        np.stack([a, b], axis=1), pixels, Graph.from_edges(("a", "b"), [("a", "b")])
    )
    assert found.groups == ((0,), (1,))
    assert found.owner.tolist() == [0, 0, 1, 1]


def test_where_two_explain_a_pixel_equally_the_effect_has_it() -> None:
    a = np.random.default_rng(0).uniform(-1, 1, 1600)
    labels, graph = np.stack([a, 2 * a], axis=1), Graph.from_edges(("a", "b"), [("a", "b")])
    assert group_concepts(labels, a[:, None], graph).owner.tolist() == [1]
    assert group_concepts(labels[:, ::-1], a[:, None], graph).owner.tolist() == [1]


@pytest.mark.parametrize("cases", [3, 100])
def test_a_rare_label_takes_no_more_than_its_own_pixels(cases: int) -> None:
    rng = np.random.default_rng(0)
    labels = np.stack([rng.uniform(-1, 1, 30_000), np.arange(30_000) < cases], axis=1)
    pixels = labels[:, [0, 0, 1]] + 0.01 * rng.normal(size=(30_000, 3))
    found = group_concepts(labels, pixels, Graph.from_edges(("common", "rare"), []))
    assert found.groups == ((0,), (1,))
    assert found.owner.tolist()[:2] == [0, 0]
    if cases >= RARE:
        assert found.owner[2] == 1
        assert found.seen == (True, True)


def test_rows_are_drawn_with_rare_values_in_both_halves_and_elsewhere_as_ever() -> None:
    rng = np.random.default_rng(1)
    labels = np.stack([rng.normal(size=50_000), rng.random(50_000) < 0.001], axis=1)
    rows = varied_rows(labels, 1600)
    assert len(set(rows)) == len(rows) == 1600
    first, second = labels[rows, 1].reshape(2, -1).sum(axis=1)
    assert first + second == RARE
    assert min(first, second) >= 5
    usual = np.random.default_rng(0).permutation(50_000)[:1600]
    assert np.array_equal(varied_rows(labels[:, :1], 1600), usual)


@pytest.mark.filterwarnings("error")
def test_images_and_labels_that_never_change_divide_nothing_by_zero() -> None:
    u = np.random.default_rng(0).normal(size=(600, 2))
    graph = Graph.from_edges(("a", "b"), [])
    blank = group_concepts(u, np.full((600, 5), 128 / 255), graph)
    assert blank.owner.tolist() == [-1] * 5
    assert blank.seen == (False, False)
    still = group_concepts(u * [1, 0], u[:, :1].repeat(5, axis=1), graph)
    assert still.owner.tolist() == [0] * 5
    assert still.seen == (True, False)


def test_noise_that_no_concept_explains_shows_none() -> None:
    rng = np.random.default_rng(0)
    u, noise = rng.normal(size=(1600, 2)), rng.normal(size=(1600, 20))
    pixels = np.hstack([u[:, :1], noise])
    assert group_concepts(u, pixels, Graph.from_edges(("a", "b"), [])).seen == (True, False)
