"""The scene of 3D shapes, and the ray caster that draws it."""

import numpy as np
import pytest

from disentwine.data import Shapes3D
from disentwine.data.synthetic import raycaster as raycasting
from disentwine.data.synthetic import shapes3d
from disentwine.data.synthetic.raycaster import LAYERS, camera, intersect, render_maps
from disentwine.errors import UsageError

SOLIDS = range(4)
FLOOR, WALL, OBJECT, SKY, HIGHLIGHT = range(len(LAYERS))


def inside(solid: int, points: np.ndarray) -> np.ndarray:
    """Whether points (..., 3) lie in a solid of scale 1."""
    x, y, z = np.moveaxis(points, -1, 0)
    away = np.hypot(x, y)
    if solid == raycasting.CUBE:
        return (np.abs(x) < 0.64) & (np.abs(y) < 0.64) & (z > 0) & (z < 1.28)
    if solid == raycasting.CYLINDER:
        return (away < 0.7) & (z > 0) & (z < 1.4)
    if solid == raycasting.SPHERE:
        return x**2 + y**2 + (z - 0.8) ** 2 < 0.8**2
    nearest = np.clip(z, 0.55, 1.25)
    return away**2 + (z - nearest) ** 2 < 0.55**2


@pytest.mark.parametrize("solid", SOLIDS)
def test_rays_meet_what_they_run_into(solid):
    """Against walking along each ray in small steps."""
    origin, direction = camera(np.array([-30.0, 17.0]), 24)
    enter, _, normal = intersect(solid, origin, direction, np.ones(2, np.float32))
    t = np.arange(2.5, 7.5, 0.01)
    walked = origin[:, :, None] + t[:, None] * direction[:, :, None]
    within = inside(solid, walked)
    met = within.any(axis=-1)
    hit = np.isfinite(enter)
    # A ray that only grazes the solid may slip between two steps.
    assert not (met & ~hit).any()
    assert (hit & ~met).mean() < 0.02
    both = hit & met
    first = t[within.argmax(axis=-1)]
    assert np.abs(first - enter)[both].max() < 0.0101
    np.testing.assert_allclose(np.linalg.norm(normal[both], axis=-1), 1, atol=1e-3)
    assert (np.sum(normal * direction, axis=-1)[both] <= 1e-4).all()


def test_no_shadow_falls_away_from_the_light():
    on_floor = np.array([[[-2.0, -2.0, 0.0], [1.2, 1.3, 0.0]]], np.float32)
    towards_light = np.broadcast_to(raycasting.LIGHT, on_floor.shape)
    for solid in SOLIDS:
        enter = intersect(solid, on_floor, towards_light, np.ones(1, np.float32)).enter
        # The first place lies between the light and the solid; the other is behind the tall ones.
        assert not np.isfinite(enter[0, 0])
    assert np.isfinite(
        intersect(
            raycasting.CYLINDER, on_floor * 0.65, towards_light, np.ones(1, np.float32)
        ).enter[0, 1]
    )


def test_every_ray_ends_somewhere_once():
    maps = render_maps(
        np.repeat(np.arange(4.0), 2), np.full(8, 1.0), np.tile([-30.0, 12.0], 4), samples=1
    )
    ends = (maps[..., [FLOOR, WALL, OBJECT, SKY]] > 0).sum(axis=-1)
    assert (ends == 1).all()
    assert (maps[:, 0, :, SKY] == 1).all()
    assert (maps[:, -1, :, FLOOR] > 0).all()


def test_scenes_are_cast_alike_alone_and_in_a_batch():
    rng = np.random.default_rng(0)
    shape, scale, angle = (
        rng.integers(0, 4, 11).astype(float),
        rng.uniform(0.7, 1.3, 11),
        rng.uniform(-30, 30, 11),
    )
    together = render_maps(shape, scale, angle, side=16)
    for i in range(11):
        np.testing.assert_array_equal(
            render_maps(shape[[i]], scale[[i]], angle[[i]], side=16)[0], together[i]
        )


def test_larger_solids_cover_more_and_only_cubes_show_how_they_turn():
    for solid in SOLIDS:
        covered = (
            render_maps(np.full(4, float(solid)), np.array([0.75, 0.9, 1.1, 1.25]), np.zeros(4))[
                ..., OBJECT
            ]
            > 0
        ).sum((1, 2))
        assert (np.diff(covered) > 20).all()
        outline = (
            render_maps(np.full(2, float(solid)), np.ones(2), np.array([0.0, 20.0]), samples=1)[
                ..., OBJECT
            ]
            > 0
        )
        turned = (outline[0] != outline[1]).mean()
        assert turned > 0.01 if solid == raycasting.CUBE else turned < 0.005


def test_ordered_as_published():
    dataset = Shapes3D()
    assert len(dataset) == 480_000
    assert dataset.names == ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    assert dataset.factors[0].tolist() == [0, 0, 0, 0.75, 0, -30]
    np.testing.assert_allclose(dataset.factors[-1], [0.9, 0.9, 0.9, 1.25, 3, 30])
    assert dataset.factors[15].tolist() == [0, 0, 0, 0.75, 1, -30]


def test_images_are_what_the_simulator_draws():
    dataset = Shapes3D(hues=4, scales=2, orientations=3)
    some = np.random.default_rng(0).choice(len(dataset), 12, replace=False)
    images = dataset.images[some]
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images, dataset.simulate(dataset.factors[some]).images)
    np.testing.assert_array_equal(dataset.images[int(some[3])], images[3])


@pytest.mark.parametrize(
    ("name", "layer"), [("floor_hue", FLOOR), ("wall_hue", WALL), ("object_hue", OBJECT)]
)
def test_a_hue_colours_its_own_part_alone(name, layer):
    dataset = Shapes3D(hues=5, scales=2, orientations=2)
    factors = dataset.factors[[3, 9, 700]]
    before = dataset.simulate(factors).images
    after = dataset.simulate(factors, {name: lambda hue: hue + 0.4}).images
    maps = render_maps(factors[:, 4], factors[:, 3], factors[:, 5])
    changed = (before != after).any(axis=-1)
    assert not changed[maps[..., layer] == 0].any()
    assert changed[maps[..., layer] > 0.1].all()


def test_a_scene_is_cast_once(monkeypatch):
    casts = []

    def counting(shape, *args, **kwargs):
        casts.append(len(shape))
        return render_maps(shape, *args, **kwargs)

    monkeypatch.setattr(shapes3d, "render_maps", counting)
    dataset = Shapes3D(hues=3, scales=1, orientations=2)
    dataset.images[:20]
    dataset.images[:]
    assert sum(casts) == 8


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ([0, 0, 0, 1, 4, 0], "shape"),
        ([0, 0, 0, 0, 1, 0], "scale"),
        ([0, 0, np.nan, 1, 1, 0], "'object_hue' in row 0"),
        ([0, 0, 0, 1, 1], "columns"),
    ],
)
def test_what_cannot_be_drawn_is_named(row, named):
    with pytest.raises(UsageError, match=named):
        Shapes3D(hues=1, scales=1, orientations=1).simulate([row])


def test_scenes_on_the_grid_and_between_are_drawn_alike() -> None:
    scenes = Shapes3D(hues=2, scales=2, orientations=3)
    factors = scenes.factors[[0, 5, 30]].copy()
    factors[1, 5] += 0.01  # between two orientations
    rendered = scenes.simulate(factors).images
    assert np.array_equal(rendered, shapes3d.render(factors))
    assert np.array_equal(rendered[[0, 2]], scenes.images[[0, 30]])
