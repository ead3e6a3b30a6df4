"""Read and write PNG and JPEG safely; binarization; area averaging."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from disentwine.core.types import IndexArray, UInt8Array
from disentwine.errors import DataError, StorageError, UsageError

Binarise = Literal["none", "static", "dynamic"]
"""Keep grey values, sample binary images once, or sample training images in every batch."""


def binarised(images: UInt8Array, split: Mapping[str, IndexArray], *, how: Binarise) -> UInt8Array:
    """Binary images whose pixels are white with a probability equal to their grey value.

    The samples are the same at every call, so that scores are comparable. "dynamic" samples the
    validation and test images only; batches sample the training images if the data set is
    `stochastic`.

    Arguments:
        images: (n, height, width, channels), grey.
        split: indices of the "train" images, and others.
        how: "none", "static" or "dynamic".

    >>> grey = np.full((4, 2, 2, 1), 128, np.uint8)
    >>> split = {"train": np.array([0, 1]), "test": np.array([2, 3])}
    >>> binary = binarised(grey, split, how="dynamic")
    >>> np.unique(binary[:2]).tolist(), np.unique(binary[2:]).tolist()
    ([128], [0, 255])
    """
    if how == "none":
        return images
    noise = np.random.default_rng(0).integers(0, 255, images.shape, dtype=np.uint8)
    sampled = np.where(noise < images, np.uint8(255), np.uint8(0))  # white at 255, black at 0
    if how == "dynamic":
        sampled[split["train"]] = images[split["train"]]
    return sampled


MAX_PIXELS = 50_000_000

MAX_BYTES = 200_000_000

SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}


# Not `Image.open`: it tries all formats, and refuses huge images by a warning that can be disabled.
_DECODERS = {b"\x89PNG\r\n\x1a\n": PngImageFile, b"\xff\xd8\xff": JpegImageFile}

_ORIENTATION_TAG = 0x0112

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def read_image(
    source: str | os.PathLike[str] | bytes,
    *,
    size: int | None = None,
    channels: int = 3,
    max_pixels: int = MAX_PIXELS,
) -> UInt8Array:
    """Read a PNG or JPEG of any colour mode as (height, width, channels).

    Palette, grey, CMYK and 16-bit images are converted, transparency is composited on white, the
    EXIF orientation is applied, and only the first frame of an animation is read.

    Arguments:
        source: path of a file, or its content.
        size: crop the centre square and resize it with antialiasing to size x size.
        channels: 1 for grey, 3 for colour.
        max_pixels: larger images are refused before decoding.

    >>> content = BytesIO()
    >>> Image.new("CMYK", (40, 20), (0, 0, 0, 255)).save(content, "JPEG")
    >>> read_image(content.getvalue(), size=8).shape
    (8, 8, 3)
    """
    check_format(size, channels)
    if isinstance(source, bytes):
        if len(source) > MAX_BYTES:
            raise DataError(_too_large("the image"))
        return _read(BytesIO(source), "the image", size, channels, max_pixels)
    path = Path(source)
    try:
        if path.is_dir():
            raise DataError(f"{path} is a folder; give one image in it")
        if not path.is_file():
            raise DataError(f"{path}: there is no such image file; check its name")
        if path.stat().st_size > MAX_BYTES:
            raise DataError(_too_large(str(path)))
        with path.open("rb") as file:
            return _read(file, str(path), size, channels, max_pixels)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check its permissions"
        ) from error


def check_format(size: int | None, channels: int) -> None:
    """Refuse an invalid size or number of channels."""
    if channels not in (1, 3):
        raise UsageError(f"channels={channels}: choose 1 for grey or 3 for colour")
    if size is not None and not 1 <= size <= 4096:
        raise UsageError(f"size={size}: choose a size from 1 to 4096 pixels")


def _too_large(name: str) -> str:
    return f"{name}: more than {MAX_BYTES // 1_000_000} MB; save it smaller"


@contextmanager
def decode(file: BinaryIO, name: str, *, max_pixels: int = MAX_PIXELS) -> Iterator[Image.Image]:
    """Open a PNG or JPEG; other formats and decoding errors raise `DataError`.

    Arguments:
        file: the content.
        name: of the file, for the error.
        max_pixels: larger images are refused before decoding.
    """
    start = file.read(8)
    file.seek(0)
    decoder = next((d for magic, d in _DECODERS.items() if start.startswith(magic)), None)
    if decoder is None:
        raise DataError(f"{name}: neither PNG nor JPEG by its content; save it as one of these")
    try:
        with decoder(file) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise DataError(
                    f"{name}: {width} x {height} pixels is more than {max_pixels // 1_000_000} "
                    "megapixels; save it smaller"
                )
            yield image
    except DataError:
        raise
    except Exception as error:  # a decoder may raise anything on damaged files
        reason = str(error) or type(error).__name__
        raise DataError(f"{name}: damaged image ({reason}); replace it") from error


def _read(
    file: BinaryIO, name: str, size: int | None, channels: int, max_pixels: int
) -> UInt8Array:
    with decode(file, name, max_pixels=max_pixels) as image:
        return _convert(image, size, channels)


def _convert(image: Image.Image, size: int | None, channels: int) -> UInt8Array:
    if size is not None:
        # Drafts of at least twice the size keep the antialiasing of `resize`; PNG ignores drafts.
        scale = 2 * size / min(image.size)
        image.draft(image.mode, (round(image.width * scale), round(image.height * scale)))
    image.load()
    orientation = _orientation(image)  # after loading: in a PNG it may follow the pixels
    image = _eight_bits(image)
    if size is not None:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        # Crop first: with a `box`, `resize` would mix in pixels from outside.
        image = image.crop((left, top, left + side, top + side))
        image = image.resize((size, size), Image.Resampling.BICUBIC, reducing_gap=3.0)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert("L" if channels == 1 else "RGB")
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
    return np.array(image, dtype=np.uint8).reshape(image.height, image.width, channels)


def _orientation(image: Image.Image) -> int | None:
    try:
        tag = image.getexif().get(_ORIENTATION_TAG)
    except Exception:  # damaged EXIF data do not affect the pixels
        return None
    return tag if isinstance(tag, int) else None


def _eight_bits(image: Image.Image) -> Image.Image:
    """The image in mode L, RGB or, with transparency, RGBA."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        grey = (values >> 8).astype(np.uint8)  # Pillow would clip at 255
        if "transparency" in image.info:
            grey[values == image.info["transparency"]] = 255
        return Image.fromarray(grey)
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        return image.convert("RGBA")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def write_image(path: str | os.PathLike[str], array: UInt8Array) -> None:
    """Write an image (height, width, 1 or 3) or (height, width), `uint8`, as PNG or JPEG.

    The file is written atomically.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: the name of an image ends in {', '.join(SUFFIXES)}")
    grey = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 1)
    if array.dtype != np.uint8 or array.size == 0 or not (grey or array.shape[2:] == (3,)):
        raise UsageError(
            f"an image is uint8 of (height, width, 1 or 3), not {array.dtype} of {array.shape}"
        )
    content = BytesIO()
    image = Image.fromarray(array.reshape(array.shape[:2]) if grey else array)
    image.save(content, SUFFIXES[suffix])
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content.getvalue())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageError(f"{path}: cannot be written ({error.strerror})") from error


CHUNK = 2048


def shrink(images: NDArray[Any], size: int, *, white: float = 255.0) -> UInt8Array:
    """Resize square grey images (n, side, side) to (n, size, size) by area averaging.

    Arguments:
        images: `uint8`, or booleans with `white=1`.
        size: height and width of the result; at most `side`.
        white: value of white in `images`.

    >>> shrink(np.array([[[0, 255, 0], [0, 255, 0], [0, 255, 0]]], np.uint8), 1).item()
    85
    """
    side = images.shape[-1]
    if images.shape[1:] != (side, side) or not 1 <= size <= side:
        raise UsageError(f"size={size}: give 1 to {side} for images of {images.shape[1:]}")
    if side % size == 0:
        return _mean_of_blocks(images, side // size, white=white)
    edges = np.linspace(0, side, size + 1)
    pixels = np.arange(side)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = (covered.clip(0) * size / side).astype(np.float32)
    out = np.empty((len(images), size, size), np.uint8)
    for start in range(0, len(images), CHUNK):
        block = images[start : start + CHUNK].astype(np.float32) * (255 / white)
        out[start : start + CHUNK] = np.rint(weights @ block @ weights.T)
    return out


def _mean_of_blocks(images: NDArray[Any], step: int, *, white: float) -> UInt8Array:
    """`shrink` by an integer factor: sums of integers instead of matrix products."""
    total = np.zeros((len(images), *(side // step for side in images.shape[1:])), np.uint32)
    for row, column in np.ndindex(step, step):
        total += images[:, row::step, column::step]
    return np.rint(total * (255 / (white * step * step))).astype(np.uint8)
