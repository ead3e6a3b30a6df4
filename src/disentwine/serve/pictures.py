"""Pictures on their way to a browser."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

import numpy as np
from PIL import Image

from disentwine.contracts.dataset import UInt8Array

THUMBNAIL = 96
"""Longest side of a thumbnail, in pixels."""


def data_url(picture: UInt8Array) -> str:
    """A picture (height, width, 1 or 3) as a PNG inside of text.

    >>> data_url(np.zeros((4, 4, 3), np.uint8))[:22]
    'data:image/png;base64,'
    """
    content = BytesIO()
    # The quickest compression: on loopback, a few more bytes cost less than finding them.
    _image(picture).save(content, "PNG", compress_level=1)
    return "data:image/png;base64," + b64encode(content.getvalue()).decode()


def thumbnail(picture: UInt8Array) -> str:
    """The same, no larger than a thumbnail.

    >>> thumbnail(np.zeros((500, 500, 1), np.uint8)) == thumbnail(np.zeros((96, 96, 1), np.uint8))
    True
    """
    if max(picture.shape[:2]) <= THUMBNAIL:
        return data_url(picture)
    image = _image(picture)
    image.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.BICUBIC)
    return data_url(np.asarray(image).reshape(image.height, image.width, -1))


def difference(a: UInt8Array, b: UInt8Array) -> UInt8Array:
    """How far two pictures are apart in every pixel: black where they agree.

    >>> difference(np.full((1, 1, 1), 3, np.uint8), np.full((1, 1, 1), 5, np.uint8)).item()
    2
    """
    apart: UInt8Array = np.abs(a.astype(np.int16) - b).astype(np.uint8)
    return apart


def _image(picture: UInt8Array) -> Image.Image:
    grey = picture.shape[2] == 1
    return Image.fromarray(picture[..., 0] if grey else picture)
