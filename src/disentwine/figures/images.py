"""Image grids, pairs, rows and latent traversals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from disentwine.errors import UsageError
from disentwine.figures.style import DPI, HAIRLINE, INK, LABEL, QUIET, SMALL, WIDTH, new_figure

UInt8Array = NDArray[np.uint8]

GAP, GROUP_GAP, LARGEST_SCALE = 10, 34, 6

LINE = 27
"""Height of a line of a label in pixels."""

BORDER = tuple(int(HAIRLINE[i : i + 2], 16) for i in (1, 3, 5))


def as_colour(images: UInt8Array) -> UInt8Array:
    """(..., 1, 2, 3 or 4 channels) to (..., 3); transparency is composited on white.

    >>> as_colour(np.zeros((5, 8, 8, 1), np.uint8)).shape
    (5, 8, 8, 3)
    """
    if images.shape[-1] == 4:
        alpha = images[..., 3:] / 255
        return np.rint(images[..., :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    if images.shape[-1] == 3:
        return images
    grey = images.mean(axis=-1, keepdims=True).round().astype(np.uint8)
    return np.repeat(grey, 3, axis=-1)


def resize_to(images: UInt8Array, width: int) -> UInt8Array:
    """Resize (..., h, w, 3) by a whole factor to about `width` pixels.

    >>> resize_to(np.zeros((64, 64, 3), np.uint8), 180).shape
    (192, 192, 3)
    >>> resize_to(np.zeros((512, 512, 3), np.uint8), 200).shape
    (170, 170, 3)
    """
    height, original = images.shape[-3:-1]
    scale = min(int(width / original + 0.4), LARGEST_SCALE)
    if scale >= 1:
        return images.repeat(scale, axis=-3).repeat(scale, axis=-2)
    k = -(-original // max(width, 1))
    rows, columns = max(height // k, 1), max(original // k, 1)
    whole = images[..., : rows * k, : columns * k, :]
    blocks = whole.reshape(*images.shape[:-3], rows, whole.shape[-3] // rows, columns, -1, 3)
    shrunk: UInt8Array = blocks.mean(axis=(-4, -2)).round().astype(np.uint8)
    return shrunk


def mosaic(
    images: UInt8Array,
    *,
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    titles: Sequence[str] = (),
    shown: int | None = None,
    width: int = WIDTH,
    gap: int = GAP,
    group: int | None = None,
) -> Figure:
    """A table of images with labels of rows, of columns and of images.

    Arguments:
        images: (rows, columns, height, width, channels).
        row_labels: one for each row; a second line is grey.
        column_labels: one for each column, or for each group of columns.
        titles: one for each image, row by row.
        shown: number of images, row by row; the remaining places are empty.
        width: approximate width of the figure in pixels.
        gap: between images, in pixels.
        group: number of columns in a group; groups are set apart.

    >>> figure = mosaic(np.zeros((2, 3, 8, 8, 1), np.uint8), row_labels=["a", "b"])
    >>> len(figure.axes)
    1
    """
    if images.ndim != 5 or images.size == 0:
        raise UsageError(
            f"a mosaic takes images (rows, columns, height, width, channels); got {images.shape}"
        )
    rows, columns = images.shape[:2]
    group = group or columns
    groups = -(-columns // group)
    left = max((_text_width(label) for label in row_labels), default=0)
    top = 44 if column_labels else 0
    above = 36 if titles else 0
    room = width - left - columns * gap - (groups - 1) * GROUP_GAP
    cells = resize_to(as_colour(images), room // columns)
    cell_height, cell_width = cells.shape[2:4]
    lines = max((label.count("\n") + 1 for label in row_labels), default=0)
    pitch_y, pitch_x = max(cell_height + gap, LINE * lines) + above, cell_width + gap
    starts = left + np.arange(columns) * pitch_x + np.arange(columns) // group * GROUP_GAP
    size_y, size_x = top + rows * pitch_y, int(starts[-1]) + pitch_x
    sheet = np.full((size_y, size_x, 3), 255, np.uint8)
    for row, column in list(np.ndindex(rows, columns))[:shown]:
        y = top + above + row * pitch_y + (pitch_y - above - cell_height) // 2
        x = starts[column] + gap // 2
        sheet[y - 1 : y + cell_height + 1, x - 1 : x + cell_width + 1] = BORDER
        sheet[y : y + cell_height, x : x + cell_width] = cells[row, column]

    figure = new_figure(size_x, size_y)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(sheet, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    middle_x = starts + pitch_x / 2
    middle_y = top + np.arange(rows) * pitch_y + (pitch_y + above) / 2
    grouped = groups > 1
    places = [middle_x[i : i + group].mean() for i in range(0, columns, group)]
    for x, label in zip(places if grouped else middle_x, column_labels, strict=False):
        strong = {"size": LABEL, "color": INK} if grouped else {}
        _write(axes, x, top - 6, label, ha="center", va="bottom", **strong)
    for y, label in zip(middle_y, row_labels, strict=False):
        _write_label(axes, left - 14, y, label)
    for (row, column), title in zip(np.ndindex(rows, columns), titles, strict=False):
        y = middle_y[row] - cell_height / 2 - 6
        _write(axes, middle_x[column], y, title, ha="center", va="bottom")
    return figure


def _write_label(axes: Axes, x: float, y: float, label: str) -> None:
    first, _, second = label.partition("\n")
    va = "bottom" if second else "center"
    _write(axes, x, y, first, ha="right", va=va, size=LABEL, color=INK)
    if second:
        _write(axes, x, y, second, ha="right", va="top")


def _write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    # Labels may contain dollar signs, which matplotlib would parse as mathematics.
    quiet: dict[str, Any] = {"size": SMALL, "color": QUIET}
    axes.text(x, y, text, parse_math=False, **(quiet | style))


def _text_width(label: str) -> int:
    lines = [TextPath((0, 0), line.replace("$", r"\$"), size=LABEL) for line in label.split("\n")]
    return int(max(line.get_extents().width for line in lines) * DPI / 72) + 24


def image_pairs(originals: UInt8Array, reconstructions: UInt8Array) -> Figure:
    """Originals, their reconstructions, and the differences (darker is larger).

    Arguments:
        originals: (n, height, width, channels).
        reconstructions: of the same shape.

    >>> images = np.zeros((6, 8, 8, 3), np.uint8)
    >>> len(image_pairs(images, images).axes)
    1
    """
    if originals.shape != reconstructions.shape:
        raise UsageError(
            f"originals {originals.shape} and reconstructions {reconstructions.shape} must have "
            f"the same shape"
        )
    shown, rebuilt = as_colour(originals), as_colour(reconstructions)
    distance = np.abs(shown.astype(np.int16) - rebuilt).max(axis=-1, keepdims=True)
    difference = np.repeat(255 - distance, 3, axis=-1).astype(np.uint8)
    rows = np.stack([shown, rebuilt, difference])
    return mosaic(rows, row_labels=("original", "reconstruction", "difference"))


def image_grid(images: UInt8Array, columns: int, titles: Sequence[str] | None = None) -> Figure:
    """A grid of images, row by row.

    Arguments:
        images: (n, height, width, channels).
        columns: images in a row; the last row may be shorter.
        titles: one for each image.

    >>> figure = image_grid(np.zeros((5, 8, 8, 1), np.uint8), columns=3)
    """
    if columns < 1 or len(images) == 0:
        raise UsageError(f"a grid needs images and columns; got {len(images)} and {columns}")
    columns = min(columns, len(images))
    missing = -len(images) % columns
    blank = np.full((missing, *images.shape[1:]), 255, np.uint8)
    table = np.concatenate([images, blank]).reshape(-1, columns, *images.shape[1:])
    return mosaic(table, titles=titles or (), shown=len(images))


def traversals(images: UInt8Array, values: Sequence[float], labels: Sequence[str]) -> Figure:
    """Latent traversals: a row for each latent, its value increasing from left to right.

    Arguments:
        images: (latents, values, height, width, channels).
        values: value of each column in standard deviations.
        labels: name of each latent; a second line is grey.

    >>> figure = traversals(np.zeros((2, 3, 8, 8, 1), np.uint8), [-2, 0, 2], ["z0", "z1"])
    >>> [text.get_text() for text in figure.axes[0].texts][1:]  # doctest: +ELLIPSIS
    ['mean', ..., 'z0', 'z1']
    """
    if images.shape[:2] != (len(labels), len(values)):
        raise UsageError(
            f"{len(labels)} labels and {len(values)} values do not fit images {images.shape}"
        )
    return mosaic(images, row_labels=labels, column_labels=[_in_deviations(v) for v in values])


def labelled_rows(
    images: UInt8Array,
    labels: Sequence[str],
    columns: Sequence[str] = (),
    *,
    group: int | None = None,
) -> Figure:
    """Rows of images, each with a label.

    Arguments:
        images: (rows, columns, height, width, channels).
        labels: a name for each row; a second line is grey.
        columns: labels of the columns, or of groups of columns.
        group: number of columns in a group.

    >>> figure = labelled_rows(np.zeros((2, 3, 8, 8, 1), np.uint8), ["do(angle)", "truth"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['do(angle)', 'truth']
    """
    if len(images) != len(labels):
        raise UsageError(f"{len(labels)} labels do not fit {len(images)} rows")
    return mosaic(images, row_labels=labels, column_labels=columns, group=group)


def _in_deviations(value: float) -> str:
    if value == 0:
        return "mean"
    return f"{value:+g}σ".replace("-", "−")  # noqa: RUF001 - a minus sign is as wide as a plus
