"""Figures that show images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from disentwine.errors import UsageError
from disentwine.figures.mosaic import UInt8Array, as_colour, mosaic


def image_pairs(originals: UInt8Array, reconstructions: UInt8Array) -> Figure:
    """Originals above their reconstructions above what differs, darker where it differs more.

    Arguments:
        originals: (n, height, width, channels).
        reconstructions: of the same shape.

    >>> pictures = np.zeros((6, 8, 8, 3), np.uint8)
    >>> len(image_pairs(pictures, pictures).axes)
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
    """Images row by row.

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
    """What each unit of a code does: one row a unit, its value rising from left to right.

    Arguments:
        images: (units, values, height, width, channels).
        values: what each column stands for, in standard deviations.
        labels: the name of each unit; a second line is drawn quieter.

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
    """Rows of images with a label each.

    Arguments:
        images: (rows, columns, height, width, channels).
        labels: a name for each row; a second line is drawn quieter.
        columns: what is written above them.
        group: so many columns stand together, under one of these.

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
