"""Uploaded images; PNG data URLs; thumbnails."""

from __future__ import annotations

import secrets
import threading
from base64 import b64encode
from collections import OrderedDict
from io import BytesIO

import numpy as np
from PIL import Image

from disentwine.core.types import UInt8Array
from disentwine.data.images import read_image
from disentwine.errors import DataError

MAX_BYTES = 64_000_000

MAX_IMAGES = 500

MAX_PIXELS = 24_000_000

Shape = tuple[int, int, int]


class Uploads:
    """Uploaded images as files in memory, so that every run can decode them at its own size.

    Arguments:
        max_bytes: of all images together.
        max_images: maximum number of images.

    >>> Uploads().read("u-nothing", (64, 64, 3))
    Traceback (most recent call last):
    ...
    KeyError: 'u-nothing'
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES, max_images: int = MAX_IMAGES) -> None:
        self.max_bytes = max_bytes
        self.max_images = max_images
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._newest: dict[tuple[str, Shape], UInt8Array] = {}
        self._lock = threading.Lock()

    def add(self, content: bytes, shape: Shape) -> tuple[str, UInt8Array]:
        """Store an image under a random name, after it was decoded successfully.

        Arguments:
            content: a PNG or JPEG file.
            shape: (height, width, channels) of the decoded image.
        """
        pixels = decode(content, shape)
        name = f"u-{secrets.token_urlsafe(9)}"
        with self._lock:
            self._contents[name] = content
            self._newest = {(name, shape): pixels}
            self._bytes += len(content)
            while self._bytes > self.max_bytes or len(self._contents) > self.max_images:
                self._bytes -= len(self._contents.popitem(last=False)[1])
        return name, pixels

    def read(self, name: str, shape: Shape) -> UInt8Array:
        """The image of a name, decoded to a shape; `KeyError` if it is gone."""
        with self._lock:
            # The newest upload is used next and is not decoded twice.
            if (name, shape) in self._newest:
                return self._newest[name, shape]
            content = self._contents[name]
        return decode(content, shape)


def decode(content: bytes, shape: Shape) -> UInt8Array:
    """The centre square of a PNG or JPEG, resized."""
    height, width, channels = shape
    if height != width:
        raise DataError(
            f"this run's images are {height} x {width}; only square images can be uploaded"
        )
    return read_image(content, size=height, channels=channels, max_pixels=MAX_PIXELS)


THUMBNAIL = 96
"""Longest side of a thumbnail, in pixels."""


def data_url(pixels: UInt8Array) -> str:
    """An image (height, width, 1 or 3) as a PNG data URL.

    >>> data_url(np.zeros((4, 4, 3), np.uint8))[:22]
    'data:image/png;base64,'
    """
    content = BytesIO()
    # The fastest compression: on loopback, more bytes cost less than compression time.
    _image(pixels).save(content, "PNG", compress_level=1)
    return "data:image/png;base64," + b64encode(content.getvalue()).decode()


def thumbnail(pixels: UInt8Array) -> str:
    """An image as a PNG data URL of at most thumbnail size.

    >>> thumbnail(np.zeros((500, 500, 1), np.uint8)) == thumbnail(np.zeros((96, 96, 1), np.uint8))
    True
    """
    if max(pixels.shape[:2]) <= THUMBNAIL:
        return data_url(pixels)
    image = _image(pixels)
    image.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.BICUBIC)
    return data_url(np.asarray(image).reshape(image.height, image.width, -1))


def difference(a: UInt8Array, b: UInt8Array) -> UInt8Array:
    """Absolute difference of two images, black where they agree.

    >>> difference(np.full((1, 1, 1), 3, np.uint8), np.full((1, 1, 1), 5, np.uint8)).item()
    2
    """
    apart: UInt8Array = np.abs(a.astype(np.int16) - b).astype(np.uint8)
    return apart


def _image(pixels: UInt8Array) -> Image.Image:
    grey = pixels.shape[2] == 1
    return Image.fromarray(pixels[..., 0] if grey else pixels)
