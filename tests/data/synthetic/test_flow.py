"""Flow: the authors' images, the causal mechanisms and the true counterfactuals."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from disentwine.core.dataset import Simulates
from disentwine.data.synthetic.flow import MEAN_NOISE, Flow, render
from disentwine.errors import UsageError

AUTHORS = Path(os.environ.get("DISENTWINE_DATA", "")) / "causalvae" / "flow_noise_96x96.npz"
BALL, WATER, HOLE, FLOW = range(4)


@pytest.fixture(scope="module")
def cups() -> Flow:
    return Flow()


def test_table_and_images(cups: Flow) -> None:
    assert isinstance(cups, Simulates)
    assert cups.images.shape == (8100, 96, 96, 3)
    assert len(np.unique(cups.factors, axis=0)) == 8100
    first = cups.factors[0]
    assert np.allclose(first[:3], [5 / 30, (5 / 30) ** 3 + 1.0, 2.0])
    assert first[FLOW] == pytest.approx(np.sqrt(2 * 0.98 * first[WATER] * 1.5))
    assert {k: len(v) for k, v in cups.split.items()} == {
        "train": 5832,
        "validation": 648,
        "test": 1620,
    }


def test_noise_follows_the_seed_and_has_the_stated_mean(cups: Flow) -> None:
    assert cups.noise.shape == (8100,)
    assert cups.noise.min() == 0.01
    assert cups.noise.mean() == pytest.approx(MEAN_NOISE, rel=0.01)
    assert np.array_equal(Flow(size=32).noise, cups.noise)
    assert not np.array_equal(Flow(size=32, seed=1).noise, cups.noise)


def test_snapping_is_a_matter_of_yes_or_no() -> None:
    with pytest.raises(UsageError, match="pixel_snapping: give True or False, got 'no'"):
        Flow(size=32, pixel_snapping="no")  # type: ignore[arg-type]


def test_every_height_and_hole_is_seen_where_they_are_not_snapped() -> None:
    """In the cup alone, since the jet, which is never snapped, follows from both."""
    for pixel_snapping in (False, True):
        cups = Flow(size=32, pixel_snapping=pixel_snapping)
        for do in ({"water_height": [2.0, 2.02]}, {"hole": [3.0, 3.02]}):
            pair = cups.simulate(np.repeat(cups.factors[:1], 2, 0), do | {"flow": 0.0}).images
            assert np.array_equal(*pair) == pixel_snapping


@pytest.mark.skipif(not AUTHORS.is_file(), reason="needs causalvae/ in DISENTWINE_DATA")
@pytest.mark.parametrize(("pixel_snapping", "close"), [(True, 0.05), (False, 0.3)])
def test_matches_the_authors_files(cups: Flow, pixel_snapping: bool, close: float) -> None:
    """Not snapped, half a pixel of the water's top and of both ends of the gap may be missing: .28."""
    r, h, hole, flow = cups.factors.T
    labels = np.stack([r * 30 + 0.5, h, flow * 10, hole * 3 + 0.5], axis=1).astype(int)
    with np.load(AUTHORS, allow_pickle=False) as authors:
        images, published = authors["images"][::300], authors["labels"][::300]
    for image, label in zip(images, published, strict=True):
        twins = cups.factors[(labels == label).all(axis=1)]
        rendered = render(twins, np.full(len(twins), 0.01), 96, pixel_snapping=pixel_snapping)
        cup = np.abs(rendered[:, :, :46].astype(int) - image[:, :46]).mean(axis=(1, 2, 3))
        whole = np.abs(rendered.astype(int) - image).mean(axis=(1, 2, 3))
        assert cup.min() < close
        assert whole.min() < 0.3  # as the jet's noise is not known


def test_simulating_the_table_redraws_the_images_to_the_bit(cups: Flow) -> None:
    some = np.random.default_rng(0).choice(8100, 100, replace=False)
    images, factors = cups.simulate(cups.factors[some], noise=cups.noise[some])
    assert np.array_equal(images, cups.images[some])
    assert np.array_equal(factors, cups.factors[some])


def test_a_larger_ball_raises_the_water_and_the_flow(cups: Flow) -> None:
    before = cups.factors[:1]
    image, after = cups.simulate(before, do={"ball_size": 1.0}, noise=cups.noise[:1])
    assert after[0, WATER] - 1.0 == pytest.approx(before[0, WATER] - (5 / 30) ** 3)
    assert after[0, FLOW] == pytest.approx(np.sqrt(2 * 0.98 * after[0, WATER] * 1.5))
    assert after[0, HOLE] == before[0, HOLE]
    target = np.abs(cups.factors - after).sum(axis=1).argmin()
    assert np.array_equal(image[0, :, :42], cups.images[target][:, :42])


def test_moving_the_flow_moves_only_the_jet(cups: Flow) -> None:
    image, after = cups.simulate(cups.factors[:1], do={"flow": 6.0}, noise=cups.noise[:1])
    assert np.array_equal(after[0, :3], cups.factors[0, :3])
    changed = (image[0] != cups.images[0]).any(axis=(0, 2))
    assert changed[46:].any()
    assert not changed[:41].any()
    blue = (image[0, :84, 46:] == [135, 206, 250]).all(axis=2).any(axis=0).nonzero()[0]
    assert blue.max() + 46 == pytest.approx(12 + 3.72 * (8 + 6), abs=2)


@pytest.mark.parametrize("name", ["ball_size", "water_height", "hole", "flow"])
@pytest.mark.parametrize("value", [-1e9, -1.0, 0.0, 0.3, 25.0, 1e9])
def test_interventions_out_of_range_are_drawn(cups: Flow, name: str, value: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        image, after = cups.simulate(cups.factors[:2], do={name: value})
    assert np.isfinite(after).all()
    assert (image[:, :12] == 255).all()
    assert (image[:, 85:] == 255).all()
    assert (image[:, :, 86:] == 255).all()
    assert (image[:, :, :12] == 255).all()


def test_without_fall_or_flow_there_is_no_jet(cups: Flow) -> None:
    for do in ({"hole": 0.2}, {"flow": 0.0}, {"water_height": 0.0}):
        image, after = cups.simulate(cups.factors[:1], do=do)
        assert after[0, FLOW] == 0
        assert (image[0, :83, 48:] == 255).all()
        assert (image[0, 79:82, 42] == 0).all()  # nothing trickles down the wall


def test_wrong_use_is_explained(cups: Flow) -> None:
    with pytest.raises(UsageError, match="one row per image"):
        cups.simulate(cups.factors[0])
    with pytest.raises(UsageError, match="noise"):
        cups.simulate(cups.factors[:2], noise=np.zeros(3))
    with pytest.raises(UsageError, match="'hole' needs a number, got 'big'"):
        cups.simulate(cups.factors[:1], do={"hole": "big"})
    with pytest.raises(UsageError, match="Did you mean 'hole'"):
        cups.simulate(cups.factors[:1], do={"whole": 3.0})
    with pytest.raises(UsageError, match="multiple of 4"):
        Flow(size=-4)
