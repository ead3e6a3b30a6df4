"""Pendulum: the authors' images, the causal mechanisms and the true counterfactuals."""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from disentwine.core.dataset import Simulates
from disentwine.data.synthetic.pendulum import Pendulum, render
from disentwine.errors import UsageError

AUTHORS = Path(os.environ.get("DISENTWINE_DATA", "")) / "causalvae" / "pendulum_96x96.npz"
SHADOW_ROWS, SKY_ROWS = slice(79, 86), slice(0, 26)


@pytest.fixture(scope="module")
def pendulum() -> Pendulum:
    return Pendulum()


def test_table_and_images(pendulum: Pendulum) -> None:
    assert isinstance(pendulum, Simulates)
    assert pendulum.images.shape == (7308, 96, 96, 3)
    assert pendulum.factors.shape == (7308, 4)
    assert np.allclose(pendulum.factors[[0, -1], :2], [[-36.0, 54.0], [38.7, 132.3]])
    assert 90.0 not in pendulum.column("light_angle")
    assert pendulum.column("shadow_length").min() == 3.0
    assert pendulum.graph is not None
    assert set(pendulum.graph.nodes) == set(pendulum.names)


def test_split_is_disjoint_complete_and_follows_the_seed(pendulum: Pendulum) -> None:
    assert {k: len(v) for k, v in pendulum.split.items()} == {
        "train": 4934,
        "validation": 548,
        "test": 1826,
    }
    assert np.array_equal(np.sort(np.concatenate(list(pendulum.split.values()))), np.arange(7308))
    other = Pendulum(size=32, seed=1)
    assert (other.size, other.seed) == (32, 1)
    assert not np.array_equal(other.split["test"], pendulum.split["test"])


@pytest.mark.skipif(not AUTHORS.is_file(), reason="needs causalvae/ in DISENTWINE_DATA")
def test_matches_the_authors_files(pendulum: Pendulum) -> None:
    with np.load(AUTHORS, allow_pickle=False) as authors:
        assert np.allclose(pendulum.column("pendulum_angle"), 0.9 * authors["pendulum_angle_i"])
        assert np.allclose(pendulum.column("light_angle"), 0.9 * authors["light_j"])
        assert np.allclose(pendulum.column("shadow_length"), authors["shadow_length"])
        assert np.allclose(pendulum.column("shadow_position"), authors["shadow_mid"])
        theirs = authors["images"][::9].astype(int)
    snapped = render(pendulum.factors[::9], 96, pixel_snapping=True).astype(int)
    assert np.abs(snapped - theirs).mean() < 0.05
    assert np.abs(snapped - theirs).max() < 25
    assert np.abs(pendulum.images[::9].astype(int) - theirs).mean() < 0.1


def test_simulating_the_table_redraws_the_images_to_the_bit(pendulum: Pendulum) -> None:
    some = np.random.default_rng(0).choice(7308, 100, replace=False)
    images, factors = pendulum.simulate(pendulum.factors[some])
    assert np.array_equal(images, pendulum.images[some])
    assert np.array_equal(factors, pendulum.factors[some])


def test_every_place_of_the_shadow_is_seen_where_it_is_not_snapped() -> None:
    for pixel_snapping in (False, True):
        scene = Pendulum(size=32, pixel_snapping=pixel_snapping)
        twice = np.repeat(scene.factors[:1], 2, 0)
        for name, values in (("shadow_position", [8.0, 8.05]), ("shadow_length", [5.0, 5.05])):
            pair = scene.simulate(twice, {name: values}).images
            assert np.array_equal(*pair) == pixel_snapping


def test_moving_the_light_moves_the_shadow_but_not_the_pendulum(pendulum: Pendulum) -> None:
    row = 40 * 87 + 3  # an upright pendulum
    before = pendulum.factors[row : row + 1]
    image, after = pendulum.simulate(before, do={"light_angle": 117.0})
    target = int(np.abs(pendulum.factors[:, :2] - [before[0, 0], 117.0]).sum(axis=1).argmin())
    assert np.allclose(after, pendulum.factors[target])
    assert np.array_equal(image[0], pendulum.images[target])
    assert np.array_equal(image[0, 26:79], pendulum.images[row][26:79])


@pytest.mark.parametrize("do", [{"shadow_length": 8.0}, {"shadow_position": 12.0}])
def test_moving_the_shadow_moves_nothing_else(pendulum: Pendulum, do: dict[str, float]) -> None:
    image, after = pendulum.simulate(pendulum.factors[:1], do=do)
    assert np.array_equal(after[0, :2], pendulum.factors[0, :2])
    changed = (image[0] != pendulum.images[0]).any(axis=(1, 2))
    assert changed[SHADOW_ROWS].any()
    assert not changed[: SHADOW_ROWS.start].any()


@pytest.mark.parametrize("name", ["pendulum_angle", "light_angle", "shadow_length"])
@pytest.mark.parametrize("value", [-1e9, 0.0, 90.0, 180.0, 1e9])
def test_interventions_out_of_range_are_drawn(pendulum: Pendulum, name: str, value: float) -> None:
    image, after = pendulum.simulate(pendulum.factors[:2], do={name: value})
    assert np.isfinite(after).all()
    assert (image[:, :12] == 255).all()
    assert (image[:, 85:] == 255).all()


def test_smaller_images_show_the_same_scene(pendulum: Pendulum) -> None:
    small = Pendulum(size=64).images[::500].astype(float)
    large = np.asarray(pendulum.images[::500], float)
    halved = large.reshape(-1, 32, 3, 32, 3, 3).mean(axis=(2, 4))
    assert np.abs(small.reshape(-1, 32, 2, 32, 2, 3).mean(axis=(2, 4)) - halved).mean() < 3
    assert (small[:, 2, 2] == 255).all()


def test_no_images_are_no_error(pendulum: Pendulum) -> None:
    assert pendulum.simulate(np.empty((0, 4))).images.shape == (0, 96, 96, 3)


def test_wrong_use_is_explained(pendulum: Pendulum) -> None:
    with pytest.raises(UsageError, match="one row per image"):
        pendulum.simulate(pendulum.factors[0])
    with pytest.raises(UsageError, match="Did you mean 'light_angle'"):
        pendulum.simulate(pendulum.factors[:1], do={"light_angel": 60})
    with pytest.raises(UsageError, match="multiple of 4"):
        Pendulum(size=50)


def test_the_true_graph_cannot_be_changed() -> None:
    with pytest.raises(nx.NetworkXError):
        Pendulum(size=32).graph.remove_edge("light_angle", "shadow_length")
