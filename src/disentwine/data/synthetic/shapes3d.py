"""Shapes3D simulator: a solid in a room, with three hues, four shapes and any size."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor, Simulation, tenths
from disentwine.core.types import Do, FloatArray, IndexArray, UInt8Array
from disentwine.data.lazy_images import LazyImages, every_combination
from disentwine.data.simulation import counterfactual, no_edges
from disentwine.data.synthetic.canvas import factor_table
from disentwine.data.synthetic.raycaster import LAYERS, render_maps
from disentwine.errors import UsageError

SIDE = 64
SHAPES = ("cube", "cylinder", "sphere", "capsule")
SKY = (0.68, 0.82, 0.95)
HUES, SCALES, ORIENTATIONS = 10, 8, 15


def grid(
    *, hues: int = HUES, scales: int = SCALES, orientations: int = ORIENTATIONS
) -> tuple[FloatArray, ...]:
    """The values of floor hue, wall hue, object hue, scale, shape and orientation."""
    hue = np.arange(hues) / hues
    return (
        hue,
        hue,
        hue,
        np.linspace(0.75, 1.25, scales),
        np.arange(float(len(SHAPES))),
        np.linspace(-30.0, 30.0, orientations),
    )


def specification(values: tuple[FloatArray, ...]) -> tuple[Factor, ...]:
    """The factors with these values, named as in Shapes3D."""
    floor, wall, thing, scale, _, orientation = (tuple(axis.tolist()) for axis in values)
    return (
        Factor("floor_hue", "ordinal", "turns", floor, cyclic=True),
        Factor("wall_hue", "ordinal", "turns", wall, cyclic=True),
        Factor("object_hue", "ordinal", "turns", thing, cyclic=True),
        Factor("scale", "ordinal", values=scale),
        Factor("shape", "categorical", values=SHAPES),
        Factor("orientation", "ordinal", "°", orientation),
    )


class Shapes3D(Dataset):
    """480,000 images of a solid in a room: our own scene with the factors of Shapes3D.

    The images resemble the published ones, `shapes3d-authors`, but are not equal to them. The order
    is the same: orientation changes fastest. Images are rendered on access; rays are cast once for
    each shape, scale and orientation, and batches are then coloured in milliseconds. 10 % are test
    images, and 10 % but at most 10,000 are validation images.

    Reference: 3D Shapes Dataset, C. Burgess and H. Kim, 2018; Disentangling by Factorising, H. Kim
    and A. Mnih, 2018.

    Arguments:
        hues: number of hues of floor, wall and object; fewer make a smaller data set.
        scales: number of sizes, from 0.75 to 1.25.
        orientations: number of camera positions, from -30° to 30°.
        seed: of the split.

    >>> Shapes3D()
    Shapes3D(480,000 images of 64x64x3; floor_hue, wall_hue, object_hue, scale, shape, orientation)
    >>> few = Shapes3D(hues=2, scales=2, orientations=2)
    >>> few.simulate(few.factors[:2], do={"shape": 2.0, "wall_hue": 0.33}).images.shape
    (2, 64, 64, 3)
    """

    about = (
        "3D shapes: hues of floor, wall, object; scale, shape, orientation (our own Shapes3D scene)"
    )

    def __init__(
        self,
        *,
        hues: Annotated[int, Ge(1), Le(64)] = HUES,
        scales: Annotated[int, Ge(1), Le(64)] = SCALES,
        orientations: Annotated[int, Ge(1), Le(64)] = ORIENTATIONS,
        seed: int = 0,
    ) -> None:
        self.hues, self.scales, self.orientations, self.seed = hues, scales, orientations, seed
        values = grid(hues=hues, scales=scales, orientations=orientations)
        self.spec = specification(values)
        self.factors = every_combination(*values)
        self.graph = no_edges(self.names)
        n = len(self.factors)
        self.images = LazyImages((n, SIDE, SIDE, 3), self._render)
        self.split = tenths(n, seed=seed)

    @cached_property
    def _scenes(self) -> Scenes:
        return Scenes(self.factors[: self.scales * len(SHAPES) * self.orientations, 3:])

    @cached_property
    def _scene_indices(self) -> dict[tuple[float, ...], int]:
        return {tuple(scene): index for index, scene in enumerate(self._scenes.scenes)}

    def _render(self, indices: IndexArray) -> UInt8Array:
        maps = self._scenes[indices % len(self._scenes)]  # the hues change slowest
        return colour(maps, self.factors[indices, :3])

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render any factors, also between and beyond the grid's; the factors are independent.

        Arguments:
            factors: (n, 6) hues of floor, wall and object, scale, shape index, orientation.
            do: the intervention.
            noise: unused; the factors determine the image.
        """
        table = factor_table(factors, self.names)
        after = counterfactual(table, self.spec, self.graph, {}, do)
        _check_scenes(after)
        index = np.array(
            [self._scene_indices.get(tuple(scene), -1) for scene in after[:, 3:]], np.int64
        )
        images = np.empty((len(after), SIDE, SIDE, 3), np.uint8)
        on_grid = index >= 0
        images[on_grid] = colour(self._scenes[index[on_grid]], after[on_grid, :3])
        if not on_grid.all():
            images[~on_grid] = render(after[~on_grid])
        return Simulation(images, after)


class Scenes:
    """Colour maps of scenes (n, 3: scale, shape, orientation), each ray-cast on first use."""

    def __init__(self, scenes: FloatArray) -> None:
        self.scenes = scenes
        self.maps = np.empty((len(scenes), SIDE, SIDE, len(LAYERS)), np.float32)
        self.is_rendered = np.zeros(len(scenes), bool)

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, indices: IndexArray) -> NDArray[np.float32]:
        new = np.unique(indices[~self.is_rendered[indices]])
        if len(new):
            scale, shape, orientation = self.scenes[new].T
            self.maps[new] = render_maps(shape, scale, orientation, side=SIDE)
            self.is_rendered[new] = True
        return self.maps[indices]


def render(factors: FloatArray) -> UInt8Array:
    """Render a table of factors (n, 6) as images (n, 64, 64, 3)."""
    _check_scenes(factors)
    scenes, which = np.unique(factors[:, 3:], axis=0, return_inverse=True)
    maps = render_maps(scenes[:, 1], scenes[:, 0], scenes[:, 2], side=SIDE)
    return colour(maps[which.reshape(-1)], factors[:, :3])


def _check_scenes(factors: FloatArray) -> None:
    for fault, column, allowed in (
        (~np.isfinite(factors).all(axis=1), "a factor", "a finite number"),
        (~np.isin(factors[:, 4], range(len(SHAPES))), "shape", f"0 to 3 ({', '.join(SHAPES)})"),
        (~((factors[:, 3] > 0) & (factors[:, 3] <= 3)), "scale", "above 0 and at most 3"),
    ):
        if fault.any():
            i = int(np.argmax(fault))
            raise UsageError(f"row {i} of the factors: {column} must be {allowed}: {factors[i]}")


def colour(maps: NDArray[np.float32], hues: FloatArray) -> UInt8Array:
    """Images (n, 64, 64, 3): the sum of the maps (n, 64, 64, 5), coloured by hues (n, 3)."""
    colours = np.empty((len(maps), len(LAYERS), 3), np.float32)
    colours[:, :3] = rgb(hues)
    colours[:, 3:] = SKY, (1.0, 1.0, 1.0)
    light = maps.reshape(len(maps), -1, len(LAYERS)) @ (255 * colours)
    np.rint(light, out=light)
    return light.clip(0, 255).astype(np.uint8).reshape(-1, *maps.shape[1:3], 3)


def rgb(hue: FloatArray) -> FloatArray:
    """Fully saturated colours (..., 3) of hues in turns: red at 0, green at 1/3, blue at 2/3.

    >>> rgb(np.array([0.0, 1 / 3])).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    distance: FloatArray = np.abs((hue[..., None] * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3)
    return (distance - 1).clip(0, 1)
