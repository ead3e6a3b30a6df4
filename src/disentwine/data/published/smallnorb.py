"""smallNORB: toys on a turntable under six lights, from the published files."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor, random_split
from disentwine.core.types import Count, FloatArray, UInt8Array
from disentwine.data.files import find_file, open_binary, read_exactly
from disentwine.data.images import shrink

SOURCE = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
LICENCE = "for research only, (c) F. J. Huang and Y. LeCun; cite them"
STEMS = (
    "smallnorb-5x46789x9x18x6x2x96x96-training",
    "smallnorb-5x01235x9x18x6x2x96x96-testing",
)
PAIRS, SIDE = 24_300, 96
TYPES: dict[int, np.dtype[Any]] = {0x1E3D4C55: np.dtype(np.uint8), 0x1E3D4C54: np.dtype("<i4")}
"""Magic numbers of the matrices of smallNORB."""


class SmallNORB(Dataset):
    """48,600 grey images of 50 toys; half of the toys are test images, as published.

    All images are from the left camera.

    Reference: Learning Methods for Generic Object Recognition with Invariance to Pose and Lighting,
    Y. LeCun, F. J. Huang and L. Bottou, 2004.

    Arguments:
        size: height and width of the images; the published ones are 96x96.
        seed: of the choice of 10 % of the training images for validation.
    """

    about: ClassVar[str] = "48,600 images of toys, 32x32 grey; the published files"
    spec = (
        Factor("category", "categorical", values=("animal", "human", "plane", "truck", "car")),
        Factor("instance", "categorical", values=tuple("0123456789")),
        Factor("elevation", "ordinal", "°", tuple(range(30, 75, 5))),
        Factor("azimuth", "ordinal", "°", tuple(range(0, 360, 20)), cyclic=True),
        Factor("lighting", "categorical", values=tuple("012345")),
    )

    def __init__(self, *, size: Count = 32, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        parts = [read_half(stem, size) for stem in STEMS]
        self.images = np.concatenate([images for images, _ in parts])
        self.factors = np.concatenate([factors for _, factors in parts])
        n = len(parts[0][0])
        self.split = random_split(n, test=0, validation=n // 10, seed=seed)
        self.split["test"] = np.arange(n, len(self.images), dtype=np.int64)


def read_half(stem: str, size: int) -> tuple[UInt8Array, FloatArray]:
    """Images (n, size, size, 1) and factors (n, 5) of the published training or test half."""
    pairs = read_matrix(_find(f"{stem}-dat.mat"), shape=(PAIRS, 2, SIDE, SIDE))
    category = read_matrix(_find(f"{stem}-cat.mat"), shape=(PAIRS,))
    instance, elevation, azimuth, lighting = read_matrix(
        _find(f"{stem}-info.mat"), shape=(PAIRS, 4)
    ).T
    factors = [category, instance, 30 + 5 * elevation, 10 * azimuth, lighting]
    return shrink(pairs[:, 0], size)[..., None], np.stack(factors, axis=1).astype(np.float64)


def _find(name: str) -> Path:
    candidates = [
        f"{folder}{name}{packed}" for folder in ("smallnorb/", "") for packed in (".gz", "")
    ]
    return find_file(candidates, dataset="smallnorb", source=SOURCE, licence=LICENCE)


def read_matrix(path: Path, *, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read a file in LeCun's "binary matrix" format, with or without gzip, and check its shape.

    The format, little-endian, is a magic number, the number of axes, their lengths (at least three),
    then the numbers.
    """
    lengths = (*shape, *(1,) * (3 - len(shape)))
    header = struct.pack(f"<{1 + len(lengths)}i", len(shape), *lengths)
    with open_binary(path) as stream:
        magic = int.from_bytes(stream.read(4), "little")
        if magic not in TYPES:
            raise ValueError(f"it begins with {magic:#010x}, which no matrix of smallNORB does")
        if stream.read(len(header)) != header:
            raise ValueError(f"it does not have the shape {shape}")
        content = read_exactly(stream, math.prod(shape) * TYPES[magic].itemsize)
    return np.frombuffer(content, TYPES[magic]).reshape(shape)
