"""Figures that compare models hold what they were given, and animations play it there and back."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from disentwine.errors import UsageError
from disentwine.figures import Curve, animated_traversals, to_png_bytes, trade_off, traversal_grid
from disentwine.figures.animation import to_gif_bytes

CURVES = [
    Curve("beta-VAE", [16, 1], [0.006, 0.002], {"SAP": [0.3, 0.05], "Z-diff": [0.9, 0.8]}),
    Curve("DIP-VAE-I", [10], [0.0018], {"SAP": [0.2]}, spreads={"SAP": [0.01]}),
    Curve("beta-VAE", [1, 60], [0.0017, 0.011], {"SAP": [0.04, 0.55]}, published=True),
]


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def pixels(figure: Figure) -> np.ndarray:
    return np.array(Image.open(BytesIO(to_png_bytes(figure))).convert("RGB"))


def test_strips_stand_apart_and_keep_their_order() -> None:
    images = random_images(2, 3, 4, 8, 8, 3)
    shown = pixels(traversal_grid(images, rows=["a", "b"], columns=["x", "y", "scale"]))
    gap, side, apart, row = 4, 48, 34, 52
    for column, value in np.ndindex(3, 4):
        steps_from_right = (2 - column) * (4 * (side + gap) + apart) + (3 - value) * (side + gap)
        right = shown.shape[1] - gap // 2 - steps_from_right
        for line in range(2):
            bottom = shown.shape[0] - gap // 2 - (1 - line) * row
            expected = images[line, column, value].repeat(6, axis=0).repeat(6, axis=1)
            assert np.array_equal(shown[bottom - side : bottom, right - side : right], expected)


def test_small_rows_make_room_for_their_labels() -> None:
    strips = random_images(3, 2, 30, 64, 64, 1)
    figure = traversal_grid(strips, rows=["a\nfirst", "b\nsecond", "c\nthird"], columns=["x", "y"])
    texts = {text.get_text(): text for text in figure.axes[0].texts}
    figure.canvas.draw()
    boxes = [texts[name].get_window_extent() for name in ("a", "first", "b", "second")]
    for upper, lower in pairwise(boxes):
        assert upper.y0 > lower.y1 - 5


def test_a_curve_runs_through_its_settings_in_order() -> None:
    figure = trade_off(CURVES)
    sap, z_diff = figure.axes
    assert [axes.get_title(loc="left") for axes in (sap, z_diff)] == ["SAP", "Z-diff"]
    lines = [container.lines[0] for container in sap.containers]
    assert lines[0].get_xdata().tolist() == [0.002, 0.006]
    assert lines[0].get_ydata().tolist() == [0.05, 0.3]
    assert [text.get_text() for text in sap.texts] == ["16", "1", "10", "1", "60"]
    assert len(z_diff.containers) == 1
    assert sap.get_xscale() == "log"


def test_published_points_are_hollow_and_in_the_colour_of_ours() -> None:
    figure = trade_off(CURVES)
    ours, other, published = (container.lines[0] for container in figure.axes[0].containers)
    assert ours.get_color() == published.get_color() != other.get_color()
    assert to_hex(published.get_markerfacecolor()) == "#ffffff"
    assert to_hex(ours.get_markerfacecolor()) != "#ffffff"
    assert ours.get_marker() != other.get_marker()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["beta-VAE", "DIP-VAE-I", "beta-VAE (published)"]


def test_an_animation_goes_there_and_back_in_true_colours() -> None:
    """Greys are kept to the bit; the image of latent 1 is the second cell of each frame."""
    greys = np.array([[10, 90, 170, 250], [250, 170, 90, 10]], np.uint8)
    images = np.broadcast_to(greys[:, :, None, None, None], (2, 4, 8, 8, 1))
    film = Image.open(BytesIO(animated_traversals(images, ["z0", "z1"], milliseconds=50)))
    seen, durations = [], []
    for frame in range(film.n_frames):
        film.seek(frame)
        shown = np.array(film.convert("RGB"))
        seen.append(int(shown[-20, -20, 0]))
        assert (shown[0, 0] == 255).all()
        durations.append(film.info["duration"])
    assert seen == [250, 170, 90, 10, 90, 170]
    assert durations == [100, 50, 50, 100, 50, 50]
    assert film.info["loop"] == 0


def test_animations_repeat_to_the_byte() -> None:
    images = random_images(3, 3, 8, 8, 3)
    assert animated_traversals(images, "abc") == animated_traversals(images, "abc")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: traversal_grid(
            random_images(2, 3, 4, 8, 8, 1), rows=["a"], columns=["x", "y", "z"]
        ),
        lambda: traversal_grid(
            random_images(2, 3, 8, 8, 1), rows=["a", "b"], columns=["x", "y", "z"]
        ),
        lambda: trade_off([]),
        lambda: trade_off([Curve("a", [1, 2], [0.1], {"SAP": [0.1, 0.2]})]),
        lambda: trade_off([Curve("a", [1], [0.0], {"SAP": [0.1]})]),
        lambda: animated_traversals(random_images(2, 3, 8, 8, 1), ["only one"]),
        lambda: to_gif_bytes([], milliseconds=[]),
    ],
)
def test_what_does_not_fit_is_refused(wrong) -> None:
    with pytest.raises(UsageError):
        wrong()


@pytest.mark.parametrize("n", [1, 4, 9, 14])
def test_a_legend_stays_within_its_figure_however_many_names_it_has(n: int) -> None:
    names = [f"dip-vae-{'i' * (i % 3 + 1)} annealed lambda {i}" for i in range(n)]
    figure = trade_off([Curve(name, [1], [0.002], {"SAP": [0.1]}) for name in names])
    to_png_bytes(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert [text.get_text() for text in legend.get_texts()] == names
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    lines = len({round(text.get_window_extent().y0) for text in legend.get_texts()})
    assert lines <= -(-n // 3)


def test_no_two_methods_look_alike() -> None:
    curves = [Curve(f"method {i}", [1], [0.002], {"SAP": [i / 12]}) for i in range(12)]
    lines = trade_off(curves).axes[0].get_lines()
    plotted = {
        (to_hex(line.get_color()), line.get_marker()) for line in lines if len(line.get_xdata())
    }
    assert len({look for look in plotted if look[1] not in ("_", "None")}) == 12
