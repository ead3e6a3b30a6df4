"""Concepts are painted together exactly when pixels need them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from disentwine.causal import Graph
from disentwine.data import Arrays, Flow, Pendulum
from disentwine.errors import DataError
from disentwine.models import MODELS, LayeredCausalVAE
from disentwine.models.causal.pixel_attribution import (
    RARE,
    group_concepts,
    learn_composition,
    varied_rows,
)


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
    found = group_concepts(dataset.factors[some], pixels, graph).concept_groups
    assert {tuple(dataset.names[i] for i in group) for group in found} == groups


def test_overlapping_sets_are_merged_and_unseen_concepts_stand_alone() -> None:
    u = np.random.default_rng(0).uniform(-1, 1, (1200, 4))
    pixels = np.stack([u[:, 0] * u[:, 1], u[:, 1] * u[:, 2], u[:, 1]], axis=1)
    graph = Graph.from_edges(tuple("abcd"), [])
    found = group_concepts(u, pixels, graph)
    assert found.concept_groups == ((0, 1, 2), (3,))
    assert found.attributed_group.tolist() == [0, 0, 0]


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
    assert found.concept_groups == ((0,), (1,))
    assert found.attributed_group.tolist() == [0, 0, 1, 1]


def test_where_two_explain_a_pixel_equally_the_effect_has_it() -> None:
    a = np.random.default_rng(0).uniform(-1, 1, 1600)
    labels, graph = np.stack([a, 2 * a], axis=1), Graph.from_edges(("a", "b"), [("a", "b")])
    assert group_concepts(labels, a[:, None], graph).attributed_group.tolist() == [1]
    assert group_concepts(labels[:, ::-1], a[:, None], graph).attributed_group.tolist() == [1]


@pytest.mark.parametrize("cases", [3, 100])
def test_a_rare_label_takes_no_more_than_its_own_pixels(cases: int) -> None:
    rng = np.random.default_rng(0)
    labels = np.stack([rng.uniform(-1, 1, 30_000), np.arange(30_000) < cases], axis=1)
    pixels = labels[:, [0, 0, 1]] + 0.01 * rng.normal(size=(30_000, 3))
    found = group_concepts(labels, pixels, Graph.from_edges(("common", "rare"), []))
    assert found.concept_groups == ((0,), (1,))
    assert found.attributed_group.tolist()[:2] == [0, 0]
    if cases >= RARE:
        assert found.attributed_group[2] == 1
        assert found.visible == (True, True)


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
    assert blank.attributed_group.tolist() == [-1] * 5
    assert blank.visible == (False, False)
    still = group_concepts(u * [1, 0], u[:, :1].repeat(5, axis=1), graph)
    assert still.attributed_group.tolist() == [0] * 5
    assert still.visible == (True, False)


def test_noise_that_no_concept_explains_shows_none() -> None:
    rng = np.random.default_rng(0)
    u, noise = rng.normal(size=(1600, 2)), rng.normal(size=(1600, 20))
    pixels = np.hstack([u[:, :1], noise])
    assert group_concepts(u, pixels, Graph.from_edges(("a", "b"), [])).visible == (True, False)


LAYERED = ("causal-vae/layered", "causal-wae/layered")


def squares(labels: np.ndarray, names: tuple[str, ...], contrast: tuple[float, ...]) -> Arrays:
    """A square for each label, whose grey is the label at some contrast."""
    images = np.full((len(labels), 16, 16, 1), 128.0)
    for i, strength in enumerate(contrast):
        images[:, 6 * i : 6 * i + 4, 4:12] += strength * labels[:, i, None, None, None]
    return Arrays(images=images.round().astype(np.uint8), factors=labels, names=names)


def test_a_concept_that_shows_too_faintly_is_told_of_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    model = LayeredCausalVAE.for_data(squares(labels, ("bright", "faint"), (100, 4)), edges=())
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert "do(faint=...) will change nothing" in said
    assert "0.2% of the largest variance" in said
    assert model.decoder.group_masks.sum((1, 2))[1] == 0


def test_a_cause_that_shows_through_its_effect_is_not_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=600)
    effect = np.clip(cause + rng.normal(size=600), -1, 1)
    pictures = squares(np.stack([cause, effect], axis=1), ("cause", "effect"), (0, 100))
    learn_composition(pictures, Graph.from_edges(("cause", "effect"), [("cause", "effect")]))
    assert capsys.readouterr().err == ""
    learn_composition(pictures, Graph.from_edges(("cause", "effect"), []))
    assert "do(cause=...) will change nothing" in capsys.readouterr().err


def test_a_rare_label_that_is_seen_often_enough_has_its_pixels_and_no_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    labels = np.stack([rng.uniform(-1, 1, 6000), np.arange(6000) % 100 == 0], axis=1)
    pictures = squares(labels, ("common", "rare"), (100, 100))
    _, masks = learn_composition(pictures, Graph.from_edges(pictures.names, []))
    assert capsys.readouterr().err == ""
    assert masks[0, :4, 4:12].all()
    assert masks[1, 6:10, 4:12].all()
    assert not masks[1, :4].any()


def test_a_label_of_three_images_takes_no_pixels_of_others() -> None:
    labels = np.stack([np.linspace(-1, 1, 6000), np.arange(6000) % 2000 == 7], axis=1)
    pictures = squares(labels, ("common", "rare"), (100, 100))
    _, masks = learn_composition(pictures, Graph.from_edges(pictures.names, []))
    assert masks[0, :4, 4:12].all()
    assert not masks[1, :4].any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_images_that_never_change_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.random.default_rng(0).normal(size=(200, 2))
    LayeredCausalVAE.for_data(squares(labels, ("a", "b"), (0, 0)), edges=())
    said = capsys.readouterr().err
    assert "do(a=...)" in said
    assert "do(b=...)" in said


@pytest.mark.parametrize("name", ["causal-vae", *LAYERED])
def test_too_few_complete_labels_are_counted_among_all_images(name: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.normal(size=(200, 2))
    images = rng.integers(0, 256, (200, 16, 16, 1), dtype=np.uint8)
    whole = Arrays(images=images, factors=labels, names=("a", "b"))
    labels[whole.split["train"][7:], 1] = np.nan
    sparse = Arrays(images=images, factors=labels, names=("a", "b"), allow_missing=True)
    assert len(sparse.split["train"]) == 140
    with pytest.raises(DataError, match=r"7 of 140 training images .* or give .* `edges`"):
        MODELS[name].for_data(sparse)
    if name in LAYERED:
        with pytest.raises(
            DataError, match=r"7 of 140 .* which concept; label more .* completely$"
        ):
            MODELS[name].for_data(sparse, edges=())
    else:
        MODELS[name].for_data(sparse, edges=())
