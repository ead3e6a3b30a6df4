"""The rendered shapes: their factors, their geometry, and their likeness to the published images."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from disentwine.core.dataset import Simulates
from disentwine.data.published.dsprites import DSprites
from disentwine.data.synthetic.shapes2d import SIZES, Shapes2D, render
from disentwine.errors import UsageError

REAL = Path(os.environ.get("DISENTWINE_DATA", ""), "dsprites", "dsprites_downsampled.npz")


@pytest.fixture(scope="module")
def shapes() -> Shapes2D:
    return Shapes2D()


def test_describes_itself_without_drawing() -> None:
    fresh = Shapes2D()
    assert len(fresh) == 737_280
    assert "64x64x1" in repr(fresh)
    assert "images" not in vars(fresh)


def test_factors_are_the_whole_grid_in_the_published_order(shapes: Shapes2D) -> None:
    assert shapes.factors.shape == (737_280, 5)
    index = np.ravel_multi_index((2, 1, 13, 5, 31), SIZES)
    expected = [2, 0.6, 13 * 2 * np.pi / 39, 5 / 31, 1]
    np.testing.assert_allclose(shapes.factors[index], expected, rtol=1e-15)
    for column, factor in zip(shapes.factors.T, shapes.spec, strict=True):
        assert len(np.unique(column)) == len(factor.values)


def test_split_is_seeded_disjoint_and_complete(shapes: Shapes2D) -> None:
    sizes = {name: len(indices) for name, indices in shapes.split.items()}
    assert sizes == {"train": 653_552, "validation": 10_000, "test": 73_728}
    assert len(np.unique(np.concatenate(list(shapes.split.values())))) == 737_280
    np.testing.assert_array_equal(shapes.split["test"], Shapes2D(seed=0).split["test"])
    assert not np.array_equal(shapes.split["test"], Shapes2D(seed=1).split["test"])


def test_all_images_are_drawn_and_packed(shapes: Shapes2D) -> None:
    assert shapes.images.shape == (737_280, 64, 64, 1)
    assert shapes.images.bits.nbytes == 737_280 * 512
    assert (shapes.images.bits.view(np.uint64).any(axis=1)).all()


def test_simulating_the_grid_gives_the_grids_images(shapes: Shapes2D) -> None:
    some = np.random.default_rng(0).integers(0, len(shapes), 600)
    images, factors = shapes.simulate(shapes.factors[some])
    np.testing.assert_array_equal(images, shapes.images[some])
    np.testing.assert_array_equal(factors, shapes.factors[some])


@pytest.mark.parametrize(("shape", "area"), [(0, 4.0), (1, np.pi), (2, 90 * np.pi / 116)])
@pytest.mark.parametrize("scale", [0.5, 0.77, 1.0])
def test_area_is_that_of_the_shape(shape: int, area: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    factors = np.column_stack(
        [np.full(200, shape), np.full(200, scale), *rng.uniform(0, 1, (3, 200))]
    )
    mean = render(factors).astype(bool).sum(axis=(1, 2, 3)).mean()
    assert mean == pytest.approx(area * (9.6 * scale) ** 2, rel=0.01)


def test_orientation_turns_counter_clockwise() -> None:
    upright, left = render(np.array([[2, 1, 0, 0.5, 0.5], [2, 1, np.pi / 2, 0.5, 0.5]]))[..., 0]
    np.testing.assert_array_equal(np.rot90(upright), left)
    tip = np.flatnonzero(upright.any(axis=1))[-1]
    assert upright[tip].astype(bool).sum() <= 2, "the heart stands on its tip"


def test_a_pixel_is_the_32nd_part_of_the_way() -> None:
    here, there = render(np.array([[1, 1, 0.3, 0.25, 0.5], [1, 1, 0.3, 0.5, 0.75]]))
    np.testing.assert_array_equal(np.roll(here, (8, 8), axis=(0, 1)), there)


def test_an_intervention_changes_only_its_own_factor(shapes: Shapes2D) -> None:
    assert isinstance(shapes, Simulates)
    assert not shapes.graph.edges
    before = shapes.factors[:5]
    images, after = shapes.simulate(before, do={"x": lambda x: x + 0.5})
    np.testing.assert_array_equal(np.roll(shapes.images[:5], 16, axis=2), images)
    np.testing.assert_array_equal(np.delete(after, 3, axis=1), np.delete(before, 3, axis=1))


def test_what_leaves_the_field_is_cut_off(shapes: Shapes2D) -> None:
    images, _ = shapes.simulate(shapes.factors[:1], do={"x": -0.5, "scale": 1.0})
    assert images[0, :, :9].any()
    assert not images[0, :, 10:].any()
    assert not shapes.simulate(shapes.factors[:1], do={"y": 9.0}).images.any()


def test_no_rows_give_no_images(shapes: Shapes2D) -> None:
    assert shapes.simulate(shapes.factors[:0]).images.shape == (0, 64, 64, 1)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ({"shape": 0.5}, "shape. is one of square, ellipse, heart"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"colour": 1.0}, "no factor 'colour'"),
    ],
)
def test_impossible_interventions_are_refused(
    shapes: Shapes2D, do: dict[str, float], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        shapes.simulate(shapes.factors[:2], do=do)


def test_tables_may_be_lists_of_numbers(shapes: Shapes2D) -> None:
    row = [0, 0.5, 0, 0.5, 0.5]
    images, factors = shapes.simulate([row])  # type: ignore[arg-type]
    assert factors.tolist() == [row]
    np.testing.assert_array_equal(images, render(np.array([row])))


def test_impossible_tables_are_refused(shapes: Shapes2D) -> None:
    with pytest.raises(UsageError, match="5 columns"):
        shapes.simulate(np.ones((2, 4)))
    with pytest.raises(UsageError, match="'orientation' in row 0 is nan"):
        shapes.simulate(np.array([[0, 1, np.nan, 0.5, 0.5]]))
    with pytest.raises(UsageError, match=r"row 1.*finite"):
        render(np.array([[0, 1, 0, 0.5, 0.5], [0, 1, np.nan, 0.5, 0.5]]))


@pytest.mark.skipif(not REAL.is_file(), reason="needs dsprites_downsampled.npz in DISENTWINE_DATA")
def test_is_the_published_image_but_for_a_pixel_in_ten_thousand_images(shapes: Shapes2D) -> None:
    real = DSprites(variant="grid")
    steps = (1, 1, 4, 2, 2)
    rendered = shapes.images.bits.reshape(*SIZES, 512)[tuple(slice(None, None, s) for s in steps)]
    wrong = np.bitwise_count(rendered.reshape(-1, 512) ^ real.images.bits).sum(axis=1)
    assert wrong.max() == 1
    assert wrong.sum() <= 6
