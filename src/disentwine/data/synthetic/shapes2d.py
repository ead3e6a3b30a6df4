"""Shapes2D simulator: square, ellipse or heart under scale, orientation and position, as in dSprites."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Factor, Simulation, random_split
from disentwine.core.types import Do, FloatArray, UInt8Array
from disentwine.data.lazy_images import PackedImages, every_combination
from disentwine.data.simulation import RenderedDataset, Rendering, counterfactual, no_edges
from disentwine.data.synthetic.canvas import factor_table
from disentwine.errors import UsageError

SIDE = 64
HALF_SIZE = 9.6  # half the square's side at scale 1, in pixels
SUBPIXEL = 256  # the rasterizer of the published images snaps corners to this grid
SIZES = (3, 6, 40, 32, 32)
GRID = (
    np.arange(3.0),
    np.linspace(0.5, 1.0, 6),
    np.linspace(0.0, 2 * np.pi, 40),
    np.linspace(0.0, 1.0, 32),
    np.linspace(0.0, 1.0, 32),
)
SPEC = (
    Factor("shape", "categorical", values=("square", "ellipse", "heart")),
    Factor("scale", "ordinal", values=tuple(GRID[1].tolist())),
    Factor("orientation", "ordinal", unit="radians", values=tuple(GRID[2].tolist())),
    Factor("x", "ordinal", unit="fraction of the field", values=tuple(GRID[3].tolist())),
    Factor("y", "ordinal", unit="fraction of the field", values=tuple(GRID[4].tolist())),
)
ROW_CENTRES = np.arange(SIDE) + 0.5
# FROM_COLUMN[c]: a row of pixels as one word, those from column c to the right edge set.
FROM_COLUMN = np.packbits(np.arange(SIDE) >= np.arange(SIDE + 1)[:, None], axis=1).view(np.uint64)[
    :, 0
]


class Shapes2D(RenderedDataset):
    """All 737,280 images of three shapes under four independent transformations.

    Ordered as dSprites: shape, scale, orientation, x, y, the last changing fastest. The images are
    rendered on first use, in seconds, and stored as bits. A random 10 % are test images, and 10,000
    are validation images. The first and the last orientation (0 and 2 pi) are equal, as in dSprites.

    Reference: dSprites: Disentanglement testing Sprites dataset, L. Matthey, I. Higgins,
    D. Hassabis and A. Lerchner, 2017.

    Arguments:
        seed: of the split.

    >>> shapes = Shapes2D()
    >>> shapes
    Shapes2D(737,280 images of 64x64x1; shape, scale, orientation, x, y)
    >>> small = shapes.simulate(shapes.factors[:2], do={"shape": 2.0, "scale": 0.75})
    >>> small.images.shape
    (2, 64, 64, 1)
    """

    about = "2D shapes: square, ellipse, heart; scale, orientation, x, y (rendered as dSprites)"
    spec = SPEC

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.factors = every_combination(*GRID)
        self.graph = independent_factors()
        self.split = random_split(len(self.factors), test=73_728, validation=10_000, seed=seed)
        self.rendering = Rendering((len(self.factors), SIDE, SIDE, 1), render_grid)

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render any factors, also between and beyond the grid's; the factors are independent.

        Arguments:
            factors: (n, 5) shape index, scale, orientation, x, y.
            do: the intervention.
            noise: unused; the factors determine the image.
        """
        table = factor_table(factors, self.names)
        after = counterfactual(table, self.spec, self.graph, {}, do)
        return Simulation(render(after), after)


def independent_factors() -> nx.DiGraph:
    """The true graph: five factors, no edge."""
    return no_edges(factor.name for factor in SPEC)


def outline(shape: int) -> FloatArray:
    r"""Corners (e, 2) of a shape of unit size around its own origin; x to the right, y down.

    The heart is $x = \sin^3 t$, $y = -(13\cos t - 5\cos 2t - 2\cos 3t - \cos 4t)/14.5 - 0.15$. The
    numbers of corners are those of the published images.
    """
    if shape == 0:
        return np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
    if shape == 1:
        t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
        return np.stack([1.33 * np.cos(t), np.sin(t) / 1.33], axis=1)
    t = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    height = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([np.sin(t) ** 3, -height / 14.5 - 0.15], axis=1)


def rotated_corners(
    shape: int, scale: FloatArray, orientation: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x and y (n, e) of a shape's corners in pixels from its origin, rotated counter-clockwise."""
    x, y = outline(shape).T
    cos, sin = np.cos(orientation)[:, None], np.sin(orientation)[:, None]
    size = HALF_SIZE * scale[:, None]
    return size * (x * cos + y * sin), size * (y * cos - x * sin)


def translated(corners: FloatArray, position: FloatArray) -> FloatArray:
    """One coordinate (n, e) of corners, translated by the shape's `position` (n,)."""
    pixels = corners + (16 + 32 * position[:, None])
    return np.round(pixels * SUBPIXEL) / SUBPIXEL


def fill(x: FloatArray, y: FloatArray) -> NDArray[np.uint64]:
    """Fill polygons by the even-odd rule; a row of 64 pixels is one word.

    A pixel is inside if an odd number of edges crosses its row to the left of its centre, so a row
    is the exclusive or of the pixels to the right of each crossing.

    Arguments:
        x: (m, n, e) corners; m variants share the y of a polygon.
        y: (n, e) corners.

    Returns (m, n, 64) words, their bytes as `np.packbits` orders them.
    """
    below = y[:, None] < ROW_CENTRES[:, None]
    image, row, edge = np.nonzero(below != np.roll(below, -1, axis=-1))
    next_edge = (edge + 1) % y.shape[-1]
    start, end = y[image, edge], y[image, next_edge]
    fraction = (ROW_CENTRES[row] - start) / (end - start)
    left, right = x[:, image, edge], x[:, image, next_edge]
    columns = np.ceil(left + fraction * (right - left) - 0.5).astype(np.intp)
    to_the_right = np.take(FROM_COLUMN, columns, mode="clip")
    line = image * SIDE + row
    first = np.flatnonzero(np.diff(line, prepend=-1))
    words = np.zeros((len(x), len(y) * SIDE), np.uint64)
    words[:, line[first]] = np.bitwise_xor.reduceat(to_the_right, first, axis=1)
    return words.reshape(len(x), len(y), SIDE)


def render_grid() -> PackedImages:
    """Render all images, one pose (shape, scale, orientation) at a time over all positions."""
    words = np.empty((*SIZES, SIDE), np.uint64)
    _, scales, orientations, x, y = GRID
    for shape, scale, orientation in np.ndindex(SIZES[:3]):
        corners_x, corners_y = rotated_corners(shape, scales[[scale]], orientations[[orientation]])
        translated_x = np.broadcast_to(
            translated(corners_x, x)[:, None], (len(x), len(y), corners_x.shape[1])
        )
        words[shape, scale, orientation] = fill(translated_x, translated(corners_y, y))
    return PackedImages(words.reshape(-1, SIDE).view(np.uint8), height=SIDE, width=SIDE)


def render(factors: FloatArray, *, at_once: int = 256) -> UInt8Array:
    """Render a table of factors (n, 5) as images (n, 64, 64, 1) of 0 and 255."""
    shapes, scale = factors[:, 0], factors[:, 1]
    for fault, column, allowed in (
        (~np.isfinite(factors).all(axis=1), "a factor", "a finite number"),
        (~np.isin(shapes, GRID[0]), "shape", "0 (square), 1 (ellipse) or 2 (heart)"),
        (~(scale > 0), "scale", "positive"),
    ):
        if fault.any():
            i = int(np.argmax(fault))
            raise UsageError(f"row {i} of the factors: {column} must be {allowed}: {factors[i]}")
    words = np.empty((len(factors), SIDE), np.uint64)
    for shape in range(SIZES[0]):
        chosen = np.flatnonzero(shapes == shape)
        for start in range(0, len(chosen), at_once):
            some = chosen[start : start + at_once]
            _, scales, orientations, x, y = factors[some].T
            corners_x, corners_y = rotated_corners(shape, scales, orientations)
            words[some] = fill(translated(corners_x, x)[None], translated(corners_y, y))[0]
    return PackedImages(words.view(np.uint8), height=SIDE, width=SIDE)[:]
