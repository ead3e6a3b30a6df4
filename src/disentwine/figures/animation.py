"""Animated GIFs of latent traversals."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from disentwine.errors import UsageError
from disentwine.figures.images import UInt8Array, mosaic
from disentwine.figures.style import to_png_bytes

ANIMATION_WIDTH = 900
COLOURS = 256


def animated_traversals(
    images: UInt8Array,
    labels: Sequence[str],
    *,
    columns: int = 5,
    milliseconds: int = 90,
    width: int = ANIMATION_WIDTH,
) -> bytes:
    """GIF of latent traversals: every latent goes from its least to its largest value and back.

    Arguments:
        images: (latents, values, height, width, channels).
        labels: name of each latent, above its images.
        columns: latents in a row.
        milliseconds: duration of each value; twice as long at both ends.
        width: approximate width of the animation in pixels.

    Returns:
        The content of the file; equal images give equal bytes.

    >>> images = np.arange(6, dtype=np.uint8).reshape(2, 3, 1, 1, 1) * np.full((8, 8, 1), 40, np.uint8)
    >>> content = animated_traversals(images, ["z0", "z1"])
    >>> Image.open(BytesIO(content)).n_frames  # there and back: 1 2 3 2
    4
    """
    if images.ndim != 5 or len(images) != len(labels) or 0 in images.shape:
        raise UsageError(
            f"{len(labels)} labels do not fit traversals {images.shape}; give images "
            f"(latents, values, height, width, channels) and a label for each latent"
        )
    latents, values = images.shape[:2]
    columns = min(columns, latents)
    missing = -latents % columns
    blank = np.full((missing, *images.shape[1:]), 255, np.uint8)
    table = np.concatenate([images, blank]).reshape(-1, columns, *images.shape[1:])
    order = [*range(values), *range(values - 2, 0, -1)]
    frames = [
        to_pixels(mosaic(table[:, :, value], titles=labels, shown=latents, width=width))
        for value in range(values)
    ]
    ends = {0, values - 1}
    return to_gif_bytes(
        [frames[value] for value in order],
        milliseconds=[milliseconds * (2 if value in ends else 1) for value in order],
    )


def to_pixels(figure: Figure) -> UInt8Array:
    """Rendered pixels of a figure, (height, width, 3)."""
    return np.array(Image.open(BytesIO(to_png_bytes(figure))).convert("RGB"))


def to_gif_bytes(frames: Sequence[UInt8Array], *, milliseconds: Sequence[int]) -> bytes:
    """Frames (height, width, 3) as a GIF that repeats, with one palette for all frames.

    Arguments:
        frames: all of one shape.
        milliseconds: duration of each frame.

    >>> frames = [np.full((8, 8, 3), grey, np.uint8) for grey in (0, 255)]
    >>> to_gif_bytes(frames, milliseconds=[50, 50])[:6]
    b'GIF89a'
    """
    if len(frames) == 0 or len(frames) != len(milliseconds):
        raise UsageError(f"{len(frames)} frames and {len(milliseconds)} times do not fit")
    # With one palette for each frame, colours would flicker.
    height, width = frames[0].shape[:2]
    stacked = Image.fromarray(np.concatenate(list(frames))).quantize(COLOURS)
    images = [stacked.crop((0, i * height, width, (i + 1) * height)) for i in range(len(frames))]
    buffer = BytesIO()
    images[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=list(milliseconds),
        loop=0,
        optimize=False,
    )
    return buffer.getvalue()
