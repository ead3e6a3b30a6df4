"""The shapes against exact areas and against matplotlib's own rasterizer."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon, Rectangle

from disentwine.core.types import UInt8Array
from disentwine.data.synthetic.canvas import Canvas, coverage, factor_table, render_in_chunks
from disentwine.errors import UsageError

matplotlib.use("Agg")
RED = (200, 30, 30)


def blank(n: int = 1, size: int = 96, *, pixel_snapping: bool = False) -> Canvas:
    pixels = np.empty((n, size, size, 3), np.uint8)
    return Canvas(pixels, xlim=(0, 10), ylim=(0, 10), pixel_snapping=pixel_snapping)


def by_matplotlib(size: int, *artists: Artist) -> UInt8Array:
    figure = plt.figure(figsize=(1, 1), dpi=size)
    axes = figure.gca()
    for artist in artists:
        axes.add_artist(artist)
    axes.set(xlim=(0, 10), ylim=(0, 10))
    axes.axis("off")
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()  # type: ignore[attr-defined]
    plt.close(figure)
    return pixels


def gap(canvas: Canvas, reference: UInt8Array) -> float:
    return float(np.abs(canvas.pixels[0].astype(int) - reference).max())


def hexcolor() -> str:
    return "#{:02x}{:02x}{:02x}".format(*RED)


@pytest.mark.parametrize("degrees", [0.0, 10.0, 33.0, 45.0, 80.0, 90.0, 200.0])
@pytest.mark.parametrize("distance", [-0.8, -0.6, -0.3, 0.0, 0.1, 0.55, 0.7])
def test_coverage_is_the_area_behind_the_edge(degrees: float, distance: float) -> None:
    nx, ny = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    grid = (np.arange(400) + 0.5) / 400 - 0.5
    area = (grid * nx + grid[:, None] * ny + distance < 0).mean()
    ours = coverage(np.array([distance], dtype=np.float32), np.float32(nx), np.float32(ny))
    assert ours[0] == pytest.approx(area, abs=4e-3)


@pytest.mark.parametrize("size", [64, 96, 128])
def test_slanted_line_matches_matplotlib(size: int) -> None:
    canvas = blank(size=size)
    canvas.line((2.0, 3.0), (7.0, 6.2), width=3, color=RED)
    reference = by_matplotlib(size, Polygon([(2, 3), (7, 6.2)], color=hexcolor(), lw=3))
    assert gap(canvas, reference) < 12


@pytest.mark.parametrize("size", [32, 64, 96])
@pytest.mark.parametrize("end", [(2.13, 8.0), (7.3, 3.0)])
def test_upright_lines_are_snapped_as_in_matplotlib(size: int, end: tuple[float, float]) -> None:
    canvas = blank(size=size)
    canvas.line((2.13, 3.0), end, width=3, color=RED)
    reference = by_matplotlib(size, Polygon([(2.13, 3.0), end], color=hexcolor(), lw=3))
    assert gap(canvas, reference) <= 1


def test_an_edge_that_moves_covers_pixels_in_part_and_one_that_stays_is_crisp() -> None:
    """The filled area grows as the shape does, however little that is; snapped, it jumps."""
    heights = np.linspace(7.0, 7.2, 21)
    areas = {}
    for pixel_snapping in (True, False):
        canvas = blank(21, pixel_snapping=pixel_snapping)
        canvas.rectangle((2.0, 1.0), (5.0, heights), color=(0, 0, 0), outline=0.0)
        areas[pixel_snapping] = (1 - canvas.pixels[..., 0] / 255).sum(axis=(1, 2))
    inside = canvas.pixels[0, 50, :, 0]
    assert set(inside) == {0, 255}
    grown = (inside == 0).sum() * (heights - 7.0) * canvas.size * (0.88 - 0.11) / 10
    assert np.allclose(areas[False] - areas[False][0], grown, atol=0.1)
    assert len(np.unique(areas[True].round(3))) <= 3


def test_a_line_that_turns_does_not_jump_where_it_is_upright() -> None:
    """Turned by a thousandth of a pixel it looks the same, as slanted lines do; snapped, it does not."""
    tips = np.array([4.63, 4.63 + 1e-4, 6.0, 6.0 + 1e-4])
    for pixel_snapping in (False, True):
        canvas = blank(4, pixel_snapping=pixel_snapping)
        canvas.line((4.63, 8.2), (tips, 3.1), width=3, color=RED)
        upright, slanted = (
            np.abs(canvas.pixels[i].astype(int) - canvas.pixels[i + 1]).max() for i in (0, 2)
        )
        assert slanted <= 1
        assert (upright > 10) == pixel_snapping


@pytest.mark.parametrize("size", [40, 96, 200])
def test_the_centre_of_a_disc_may_be_that_of_a_pixel(size: int) -> None:
    canvas = blank(size=size)
    x = 10 * (size // 2 + 0.5 - 0.125 * size) / ((0.9 - 0.125) * size)
    y = 10 * (0.89 * size - size // 2 - 0.5) / ((0.88 - 0.11) * size)
    canvas.disc((x, y), 2.0, color=RED)
    middle = canvas.pixels[0, size // 2 - 1 : size // 2 + 2, size // 2 - 1 : size // 2 + 2]
    assert (middle == RED).all()


@pytest.mark.parametrize("radius", [1.5, 3.0])
def test_disc_matches_matplotlib_also_where_the_axes_cut_it(radius: float) -> None:
    canvas = blank()
    canvas.disc((8.6, 5.3), radius, color=RED)
    assert gap(canvas, by_matplotlib(96, Circle((8.6, 5.3), radius, color=hexcolor()))) < 20


def test_rectangle_matches_matplotlib() -> None:
    canvas = blank()
    canvas.rectangle((2.0, 1.0), (5.3, 7.7), color=RED)
    reference = by_matplotlib(96, Rectangle((2, 1), 3.3, 6.7, color=hexcolor()))
    assert gap(canvas, reference) < 20
    elsewhere = np.abs(canvas.pixels[0].astype(int) - reference).max(axis=2) > 1
    assert elsewhere.sum() <= 16  # four pixels at each corner, which matplotlib bevels


def test_falling_arc_matches_a_fine_polyline() -> None:
    canvas = blank()
    canvas.falling_arc((2.0, 8.0), 5.0, 6.0, width=2, color=RED)
    u = np.linspace(0, 1, 400)
    curve = Line2D(2 + 5 * u, 8 - 6 * u**2, color=hexcolor(), lw=2)
    assert gap(canvas, by_matplotlib(96, curve)) < 20


def test_each_image_gets_its_own_shape_at_the_place_it_has_alone() -> None:
    x = np.array([2.0, 5.0, 8.0])
    together = blank(3)
    together.disc((x, 5.0), 1.0, color=RED)
    for k in range(3):
        alone = blank()
        alone.disc((x[k], 5.0), 1.0, color=RED)
        assert np.array_equal(together.pixels[k], alone.pixels[0])


@pytest.mark.parametrize("value", [-1e300, -50.0, 0.0, 50.0, 1e300])
def test_shapes_out_of_range_neither_fail_nor_leave_the_axes(value: float) -> None:
    canvas = blank()
    with np.errstate(all="raise", under="ignore"):
        canvas.disc((value, 5.0), 1.0, color=RED)
        canvas.disc((5.0, 5.0), value, color=RED)
        canvas.line((5.0, 5.0), (value, value), width=2, color=RED)
        canvas.rectangle((2.0, 0.0), (4.0, value), color=RED)
        canvas.falling_arc((5.0, value), 2.0, value, width=2, color=RED)
        canvas.falling_arc((5.0, 5.0), value, 2.0, width=2, color=RED)
    assert (canvas.pixels[0, :, :12] == 255).all()
    assert (canvas.pixels[0, :, 86:] == 255).all()
    assert (canvas.pixels[0, :12] == 255).all()
    assert (canvas.pixels[0, 85:] == 255).all()


@pytest.mark.parametrize("size", [0, 28, 66, 96.0, "96", True, None])
def test_a_size_that_cannot_be_drawn_is_refused(size: object) -> None:
    with pytest.raises(UsageError, match="multiple of 4"):
        render_in_chunks(1, size, lambda canvas, rows: None, xlim=(0, 1), ylim=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros(2), "shape"),
        (np.zeros((3, 3)), "columns a, b"),
        (np.array([[0.0, 1.0], [0.0, np.nan]]), "'b' in row 1"),
        ([["x", "y"]], "numbers"),
    ],
)
def test_a_bad_factor_table_is_refused(table: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        factor_table(table, ("a", "b"))  # type: ignore[arg-type]
