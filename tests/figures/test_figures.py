"""Figures hold what they were given, pixel by pixel, and leave matplotlib's state alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import isfunction
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from disentwine import figures
from disentwine.errors import UsageError
from disentwine.figures import (
    image_grid,
    image_pairs,
    latent_activity,
    loss_curves,
    save_figure,
    to_png_bytes,
    traversals,
)
from disentwine.figures.images import as_colour, mosaic, resize_to

RECORDS = [
    {"kind": "validation", "step": 0, "loss": 900.0, "kl": 0.01},
    {"kind": "train", "step": 10, "loss": 90.0, "kl": 5.0},
    {"kind": "train", "step": 20, "loss": 70.0, "kl": 6.0},
    {"kind": "validation", "step": 20, "loss": 60.0, "kl": 6.1},
    {"kind": "train", "step": 30, "loss": 50.0, "kl": 6000.0},
    {"kind": "validation", "step": 30, "loss": 65.0, "kl": 6.2},
]


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def every_figure(height: int, width: int, channels: int) -> dict[str, Callable[[], Any]]:
    """A call of every public function of `disentwine.figures`, of images of one shape."""
    shape, matrix = (height, width, channels), [[0.5, 0.1], [0.0, 0.9]]
    labels = ["first", "second\nline"]
    some = figures.image_grid(random_images(3, *shape), columns=2)
    curve = figures.Curve("vae", [1, 4], errors=[0.2, 0.3], scores={"SAP": [0.1, 0.2]})
    scores = figures.ScoreCurve("vae", at=[1, 10], scores={"SAP": [0.1, 0.2]})
    graph = nx.DiGraph([("cause", "effect")])
    return {
        "activity_over_training": lambda: figures.activity_over_training(
            {"vae": matrix}, at={"vae": [0, 10]}, layers={"vae": [1, 2]}
        ),
        "adjacency_over_training": lambda: figures.adjacency_over_training(
            [0, 10], [matrix, matrix], names=["cause", "effect"], truth=[[0, 1], [0, 0]]
        ),
        "animated_traversals": lambda: figures.animated_traversals(
            random_images(2, 3, *shape), labels
        ),
        "effect_matrix_figure": lambda: figures.effect_matrix_figure(
            expected=matrix, actual=matrix, error=matrix, rows=labels, columns=labels, floor=matrix
        ),
        "graph_figure": lambda: figures.graph_figure(graph, graph),
        "image_grid": lambda: figures.image_grid(random_images(3, *shape), columns=2, titles=["a"]),
        "image_pairs": lambda: figures.image_pairs(
            random_images(3, *shape), random_images(3, *shape)
        ),
        "labelled_rows": lambda: figures.labelled_rows(
            random_images(2, 3, *shape), labels, ["a", "b"]
        ),
        "latent_activity": lambda: figures.latent_activity([0.2, 3.0], active=[False, True]),
        "layer_activity": lambda: figures.layer_activity([[3.0, 0.001], [0.2]]),
        "layer_maps": lambda: figures.layer_maps({"vae": [matrix]}, [0, 1], names=labels),
        "loss_curves": lambda: figures.loss_curves(RECORDS),
        "save_figure": lambda: figures.save_figure(some, os.devnull),
        "score_curves": lambda: figures.score_curves([scores], across="minutes", logarithmic=True),
        "score_matrix": lambda: figures.score_matrix(matrix, rows=labels, columns=labels),
        "to_png_bytes": lambda: figures.to_png_bytes(some),
        "trade_off": lambda: figures.trade_off([curve]),
        "traversal_grid": lambda: figures.traversal_grid(
            random_images(2, 2, 3, *shape), rows=labels, columns=labels
        ),
        "traversals": lambda: figures.traversals(random_images(2, 3, *shape), [-1, 0, 1], labels),
    }


@pytest.mark.parametrize("shape", [(16, 16, 1), (12, 20, 3)])
def test_every_public_figure_can_be_rendered(shape: tuple[int, int, int]) -> None:
    calls = every_figure(*shape)
    functions = {name for name in figures.__all__ if isfunction(getattr(figures, name))}
    assert set(calls) == functions
    for name, call in calls.items():
        made = call()
        if isinstance(made, Figure):
            size = made.get_size_inches() * made.dpi
            assert pixels(made).shape[:2] == (round(size[1]), round(size[0])), name
        else:
            assert isinstance(made, bytes | Path), name


def pixels(figure: Figure) -> np.ndarray:
    return np.array(Image.open(BytesIO(to_png_bytes(figure))).convert("RGB"))


@pytest.mark.parametrize("channels", [1, 3])
def test_every_pixel_of_an_image_is_a_crisp_block(channels: int) -> None:
    images = random_images(2, 3, 8, 8, channels)
    shown = pixels(mosaic(images, row_labels=["first", "second\nquiet"], column_labels="abc"))
    cell = as_colour(images)[1, 2].repeat(6, axis=0).repeat(6, axis=1)
    corner = shown[-48 - 5 : -5, -48 - 5 : -5]
    assert np.array_equal(corner, cell)


def test_transparency_is_laid_on_white() -> None:
    clear = np.zeros((1, 4, 4, 4), np.uint8)
    assert (as_colour(clear) == 255).all()
    clear[..., 3] = 255
    assert (as_colour(clear) == 0).all()


def test_shrinking_averages_blocks() -> None:
    stripes = np.tile(np.array([0, 200], np.uint8), 50)[None, :, None] * np.ones(
        (100, 1, 3), np.uint8
    )
    small = resize_to(stripes, 50)
    assert small.shape == (50, 50, 3)
    assert (small == 100).all()


def test_large_images_do_not_make_a_huge_figure() -> None:
    figure = image_grid(np.zeros((8, 512, 512, 3), np.uint8), columns=8)
    assert pixels(figure).shape[1] <= 1840


def test_pairs_show_no_difference_as_white() -> None:
    images = random_images(4, 16, 16, 3)
    shown = pixels(image_pairs(images, images))
    height, width = shown.shape[:2]
    assert (shown[height - 50 : height - 10, width - 50 : width - 10] == 255).all()
    changed = images.copy()
    changed[-1] = 255 - changed[-1]
    shown = pixels(image_pairs(images, changed))
    assert (shown[height - 50 : height - 10, width - 50 : width - 10] < 255).any()


def test_grid_leaves_missing_places_empty_and_titles_above() -> None:
    figure = image_grid(np.zeros((3, 8, 8, 1), np.uint8), columns=2, titles=["a", "b", "$c$"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b", "$c$"]
    shown = pixels(figure)
    assert (shown[-48:, -48:] == 255).all()
    assert (shown[-40:-10, 10:40] == 0).all()


def test_traversals_name_rows_and_columns() -> None:
    figure = traversals(random_images(2, 3, 8, 8, 1), [-1.5, 0, 1.5], ["z4\nKL 2.0", "z1"])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["−1.5σ", "mean", "+1.5σ", "z4", "KL 2.0", "z1"]  # noqa: RUF001


def test_losses_have_a_panel_a_term_and_mark_the_best_step() -> None:
    figure = loss_curves(RECORDS)
    total, kl = figure.axes
    assert [axes.get_title(loc="left") for axes in (total, kl)] == ["total loss", "kl"]
    lines = {line.get_label(): line for line in total.get_lines()}
    assert set(lines) == {"train", "validation", "best at step 20"}
    assert lines["train"].get_ydata().tolist() == [90, 70, 50]
    assert lines["validation"].get_xdata().tolist() == [20, 30]
    assert (total.get_yscale(), kl.get_yscale()) == ("linear", "log")
    assert len(figure.legends) == 1


def test_an_untrained_loss_is_shown_while_there_is_no_other() -> None:
    line = loss_curves(RECORDS[:1]).axes[0].get_lines()[0]
    assert line.get_ydata().tolist() == [900]


def test_activity_is_sorted_and_dead_units_are_faint() -> None:
    axes = latent_activity([0.2, 3.0, 0.001], active=[True, True, False]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["z1", "z0", "z2"]
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] == colours[1] != colours[2]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: loss_curves([]),
        lambda: image_pairs(random_images(2, 8, 8, 1), random_images(3, 8, 8, 1)),
        lambda: image_grid(random_images(2, 8, 8, 1), columns=0),
        lambda: traversals(random_images(2, 3, 8, 8, 1), [0.0], ["a", "b"]),
        lambda: mosaic(random_images(2, 8, 8, 1)),
    ],
)
def test_what_does_not_fit_is_refused(wrong) -> None:
    with pytest.raises(UsageError):
        wrong()


def test_figures_touch_no_global_state_and_repeat_to_the_byte(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    first = save_figure(loss_curves(RECORDS), tmp_path / "a.png").read_bytes()
    assert first == to_png_bytes(loss_curves(RECORDS))
    assert dict(matplotlib.rcParams) == before
