"""Batched, anti-aliased rendering of vector shapes.

A scene is a figure of one inch with matplotlib's default margins, so that Pendulum and Flow match the
published images and scale to other resolutions. A shape is given by the signed distance to its
outline; the opacity of a pixel is the fraction of its area inside the shape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from disentwine.core.types import FloatArray, UInt8Array
from disentwine.errors import UsageError

LEFT, RIGHT, BOTTOM, TOP = 0.125, 0.9, 0.11, 0.88
CHUNK = 64  # images; the arrays of one shape then fit into the processor's cache
FAR = 1e4  # pixels; outside every canvas, and its square fits into float32

ONE, ZERO = np.float32(1), np.float32(0)

Pixels = NDArray[np.float32]
Color = tuple[int, int, int]
Interval = tuple[float, float]
Coordinate = float | FloatArray
Point = tuple[Coordinate, Coordinate]


def render_in_chunks(
    n: int,
    size: int,
    render_rows: Callable[[Canvas, slice], None],
    *,
    xlim: Interval,
    ylim: Interval,
    pixel_snapping: bool = False,
) -> UInt8Array:
    """Render `n` images in chunks, with bounded memory.

    Arguments:
        n: number of images.
        size: height and width in pixels.
        render_rows: renders the images of a slice onto a canvas.
        xlim: the horizontal range of the axes.
        ylim: the vertical range of the axes.
        pixel_snapping: whether axis-aligned edges that move snap to whole pixels too, see `Canvas`.
    """
    check_rendering(size, pixel_snapping)
    images = np.empty((n, size, size, 3), dtype=np.uint8)
    for start in range(0, n, CHUNK):
        rows = slice(start, min(start + CHUNK, n))
        render_rows(Canvas(images[rows], xlim=xlim, ylim=ylim, pixel_snapping=pixel_snapping), rows)
    return images


def check_rendering(size: int, pixel_snapping: bool) -> None:
    """Refuse a size or a snapping option that cannot be rendered.

    >>> check_rendering(30, False)
    Traceback (most recent call last):
    disentwine.errors.UsageError: size: give a multiple of 4 from 32 up, such as 64 or 96; got 30
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 32 or size % 4:
        raise UsageError(f"size: give a multiple of 4 from 32 up, such as 64 or 96; got {size!r}")
    if not isinstance(pixel_snapping, bool):
        raise UsageError(f"pixel_snapping: give True or False, got {pixel_snapping!r}")


def factor_table(factors: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """The factors to render as (n, k) finite numbers; raises `UsageError` for anything else.

    >>> factor_table(np.array([[1, 2]]), ("height", "width"))
    array([[1., 2.]])
    """
    try:
        table = np.asarray(factors, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("factors must be numbers, one row per image") from None
    if table.ndim != 2 or table.shape[1] != len(names):
        raise UsageError(
            f"factors have shape {table.shape}; give one row per image with the "
            f"{len(names)} columns {', '.join(names)}"
        )
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        raise UsageError(
            f"factors: '{names[column]}' in row {row} is {table[row, column]}; give a finite number"
        )
    return table


class Canvas:
    """White images of one scene; shapes are rendered onto them in order.

    Shapes are placed in scene units; a coordinate is one number for all images or one per image.
    Line widths are in points; the canvas is 72 points wide. Everything is clipped at the axes.

    Arguments:
        pixels: (n, size, size, 3), overwritten with white first.
        xlim: the horizontal range of the axes.
        ylim: the vertical range of the axes.
        pixel_snapping: whether all axis-aligned lines and rectangles snap to whole pixels, as in
            matplotlib. Otherwise only edges with one coordinate for all images snap, and edges that
            differ between images are anti-aliased.

    >>> canvas = Canvas(np.empty((2, 32, 32, 3), np.uint8), xlim=(0, 10), ylim=(0, 10))
    >>> canvas.disc((np.array([4.0, 6.0]), 5.0), 2.0, color=(255, 0, 0))
    >>> canvas.pixels[:, 16, 12].tolist()
    [[255, 0, 0], [255, 255, 255]]
    """

    def __init__(
        self, pixels: UInt8Array, *, xlim: Interval, ylim: Interval, pixel_snapping: bool = False
    ) -> None:
        pixels[...] = 255
        self.pixels = pixels
        self.pixel_snapping = pixel_snapping
        self.size: int = pixels.shape[1]
        size = self.size
        self._x0, self._y0 = xlim[0], ylim[0]
        self._x_scale = size * (RIGHT - LEFT) / (xlim[1] - xlim[0])
        self._y_scale = size * (TOP - BOTTOM) / (ylim[1] - ylim[0])

    def line(self, start: Point, end: Point, *, width: float, color: Color) -> None:
        """Render a straight line with butt ends."""
        thick = self._pixels(width)
        x0, y0, x1, y1 = self._ends(start, end, thick)
        length = np.hypot(x1 - x0, y1 - y0)
        ux = np.divide(x1 - x0, length, out=np.ones_like(length), where=length > 0)
        uy = np.divide(y1 - y0, length, out=np.zeros_like(length), where=length > 0)
        window = self._window(
            np.minimum(x0, x1) - thick,
            np.maximum(x0, x1) + thick,
            np.minimum(y0, y1) - thick,
            np.maximum(y0, y1) + thick,
        )
        x, y = _offsets(window, (x0 + x1) / 2, (y0 + y1) / 2)
        ux, uy, half = _f32(ux), _f32(uy), _f32(length / 2)
        across = _between(x * uy - y * ux, np.float32(thick / 2), uy, ux)
        self._blend(window, across * _between(x * ux + y * uy, half, ux, uy), color)

    def disc(
        self, centre: Point, radius: Coordinate, *, color: Color, outline: float = 1.0
    ) -> None:
        """Render a filled circle (an ellipse where the axes stretch it) with an outline of its colour."""
        x0, y0 = self._place(centre)
        r = _column(radius)
        edge = self._pixels(outline) / 2
        rx, ry = (
            np.clip(r * self._x_scale, 0, FAR) + edge,
            np.clip(r * self._y_scale, 0, FAR) + edge,
        )
        window = self._window(x0 - rx, x0 + rx, y0 - ry, y0 + ry)
        x, y = _offsets(window, x0, y0)
        rx, ry = _f32(rx), _f32(ry)
        # The centre has no nearest point on the edge; a tiny offset selects one.
        x, y = _f32(np.where(x == 0, 1e-4, x)) / rx, y / ry
        level = np.sqrt(x * x + y * y)
        nx, ny = x / rx, y / ry
        gradient = np.sqrt(nx * nx + ny * ny) + np.float32(1e-12)
        inside = coverage(level * (level - 1) / gradient, nx / gradient, ny / gradient)
        self._blend(window, inside * (r > 0), color)

    def rectangle(
        self, corner: Point, opposite: Point, *, color: Color, outline: float = 1.0
    ) -> None:
        """Render a filled axis-aligned rectangle with an outline of its colour; inverted ones are empty."""
        thick = self._pixels(outline)
        corners = np.stack(np.broadcast_arrays(*self._place(corner), *self._place(opposite)))
        snap = self.pixel_snapping | _same_in_all_images(*corner, *opposite)
        left, bottom, right, top = np.where(snap, _snap(corners, thick), corners)
        edge = thick / 2
        window = self._window(left - edge, right + edge, top - edge, bottom + edge)
        x, y = _offsets(window, (left + right) / 2, (top + bottom) / 2)
        wide = _between(x, _f32((right - left) / 2 + edge))
        high = _between(y, _f32((bottom - top) / 2 + edge))
        self._blend(window, wide * high * ((right > left) & (bottom > top)), color)

    def falling_arc(
        self, apex: Point, reach: Coordinate, drop: Coordinate, *, width: float, color: Color
    ) -> None:
        r"""Render a line along the parabola $x = x_0 + r \sqrt{u}, y = y_0 - h u$ for $u \in [0, 1]$.

        Its ends extend by half its width. The nearest point of $y = a x^2$ to $(p, q)$ is the
        positive root of $2 a^2 t^3 + (1 - 2 a q) t - p$, which Newton's method reaches from above.
        """
        x0, y0 = self._place(apex)
        half = self._pixels(width) / 2
        r = np.clip(_column(reach) * self._x_scale, 0.05, FAR)
        h = np.clip(_column(drop) * self._y_scale, 0, FAR)
        window = self._window(x0 - half, x0 + r + 2 * half, y0 - half, y0 + h + 2 * half)
        p, q = _offsets(window, x0, y0)
        ahead = np.maximum(p, 0)
        a = _f32(np.maximum(h, 1e-3) / r**2)
        t = np.maximum(ahead, np.sqrt(np.maximum(q, 0) / a))
        for _ in range(4):
            bend = 2 * a * (a * t * t - q)
            t = t - (t * (bend + 1) - ahead) / np.maximum(bend + 1 + 4 * a * a * t * t, 1e-6)
        tilt = np.sqrt(1 + 4 * a * a * t * t)
        nx, ny = 2 * a * t / tilt, 1 / tilt
        across = _between((ahead - t) * nx - (q - a * t * t) * ny, np.float32(half), nx, ny)
        slope = 2 * h / r
        ux, uy = _f32(1 / np.hypot(1, slope)), _f32(slope / np.hypot(1, slope))
        past_end = (p - _f32(r)) * ux + (q - _f32(h)) * uy - np.float32(half)
        ends = coverage(-p - np.float32(half)) * coverage(past_end, ux, uy)
        self._blend(window, across * ends * ((h > 0) & (_column(reach) > 0)), color)

    def _pixels(self, points: float) -> float:
        return points * self.size / 72

    def _ends(self, start: Point, end: Point, thick: float) -> FloatArray:
        """Pixel coordinates of a stroke's ends, (4, n, 1, 1), snapped where required."""
        ends = np.stack(np.broadcast_arrays(*self._place(start), *self._place(end)))
        x0, y0, x1, y1 = ends
        snap = (abs(x1 - x0) < 1e-4) | (abs(y1 - y0) < 1e-4)
        if not self.pixel_snapping:
            # A line that is axis-aligned in some images only must not jump between images.
            fixed = _same_in_all_images(*start, *end)
            across = (fixed[0] & fixed[2] & (x0 == x1)) | (fixed[1] & fixed[3] & (y0 == y1))
            snap = across & fixed
        return np.where(snap, _snap(ends, thick), ends)

    def _place(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """Pixel coordinates of a point, rows counted from the top."""
        x = self.size * LEFT + (_column(point[0]) - self._x0) * self._x_scale
        y = self.size * (1 - BOTTOM) - (_column(point[1]) - self._y0) * self._y_scale
        x, y = np.broadcast_arrays(np.clip(x, -FAR, FAR), np.clip(y, -FAR, FAR))
        return x, y

    def _window(
        self, left: FloatArray, right: FloatArray, top: FloatArray, bottom: FloatArray
    ) -> tuple[slice, slice]:
        """The rows and columns that the shape covers in any image of the batch, within the axes."""
        margin = 1
        x0, x1, y0, y1 = (
            int(np.floor(self.size * edge + 0.5)) for edge in (LEFT, RIGHT, 1 - TOP, 1 - BOTTOM)
        )
        columns = np.clip([left.min() - margin, right.max() + margin + 1], x0, x1).astype(int)
        rows = np.clip([top.min() - margin, bottom.max() + margin + 1], y0, y1).astype(int)
        return slice(*rows), slice(*columns)

    def _blend(
        self, window: tuple[slice, slice], alpha: NDArray[np.floating], color: Color
    ) -> None:
        target = self.pixels[:, *window]
        opacity = _f32(alpha)
        for channel, value in enumerate(color):
            below = target[..., channel].astype(np.float32)
            target[..., channel] = below + opacity * (value - below) + np.float32(0.5)


def coverage(
    distance: Pixels,
    nx: Pixels | np.float32 = ONE,
    ny: Pixels | np.float32 = ZERO,
) -> Pixels:
    r"""Fraction of the area of a unit pixel inside a straight edge.

    $\frac{1}{2} - \operatorname{sgn}(d) (m - \max(0, m - \frac{a-b}{2})^2 / 2b) / a$, where
    $m = \min(|d|, \frac{a+b}{2})$ and $a \ge b$ are the absolute parts of the edge's unit normal.

    Arguments:
        distance: $d$, from the edge to the pixel's centre in pixels, positive outside.
        nx: horizontal part of the normal.
        ny: vertical part of the normal.

    >>> coverage(np.float32([-1.0, -0.25, 0.0, 0.5])).round(3).tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    nx, ny = np.abs(nx), np.abs(ny)
    a, b = np.maximum(nx, ny), np.maximum(np.minimum(nx, ny), np.float32(1e-6))
    m = np.minimum(np.abs(distance), (a + b) * np.float32(0.5))
    corner = np.maximum(m - (a - b) * np.float32(0.5), 0)
    half: Pixels = np.copysign((m - corner * corner / (2 * b)) / a, distance)
    return np.float32(0.5) - half


def _between(
    distance: Pixels,
    half: Pixels | np.float32,
    nx: Pixels | np.float32 = ONE,
    ny: Pixels | np.float32 = ZERO,
) -> Pixels:
    """Fraction of a pixel within distance `half` of a centre line."""
    return coverage(distance - half, nx, ny) - coverage(distance + half, nx, ny)


def _column(v: Coordinate) -> FloatArray:
    return np.asarray(v, dtype=np.float64).reshape(-1, 1, 1)


def _same_in_all_images(*coordinates: Coordinate) -> NDArray[np.bool_]:
    """Which coordinates are one number for all images, (coordinates, 1, 1, 1)."""
    return np.array([np.ndim(v) == 0 for v in coordinates]).reshape(-1, 1, 1, 1)


def _snap(v: FloatArray, width: float) -> FloatArray:
    """Whole pixels for lines of an even width, half pixels for odd widths, as in Agg."""
    return np.floor(v + 0.5) + (0.5 if round(width) % 2 else 0.0)


def _offsets(window: tuple[slice, slice], x0: FloatArray, y0: FloatArray) -> tuple[Pixels, Pixels]:
    """The window's pixel centres relative to a point: (n, 1, w) and (n, h, 1)."""
    rows, columns = (np.arange(s.start, s.stop) + 0.5 for s in window)
    return _f32(columns - x0), _f32(rows[:, None] - y0)


def _f32(v: NDArray[np.floating]) -> Pixels:
    return v.astype(np.float32, copy=False)
