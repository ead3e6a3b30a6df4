"""MNIST: handwritten digits, from the four files that their owners publish."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np

from disentwine.contracts.dataset import Dataset, Factor, UInt8Array
from disentwine.data.binarising import Binarise, binarised
from disentwine.data.files import find_file, refusing_damage
from disentwine.data.splits import random_split
from disentwine.errors import DataError

SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
"""Where PyTorch keeps a copy; the authors no longer serve their own."""
LICENCE = "CC BY-SA 3.0, (c) Y. LeCun and C. Cortes; cite them"
VALIDATION = 5_000

# SHA-256 of what the archives hold, as the archives themselves have been packed more than once.
FILES: dict[str, tuple[tuple[int, ...], str]] = {
    "train-images-idx3-ubyte": (
        (60_000, 28, 28),
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "train-labels-idx1-ubyte": (
        (60_000,),
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "t10k-images-idx3-ubyte": (
        (10_000, 28, 28),
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "t10k-labels-idx1-ubyte": (
        (10_000,),
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}


class MNIST(Dataset):
    """70,000 handwritten digits of 28x28; the official test images, 5,000 for validation.

    Reference: Gradient-based learning applied to document recognition, Y. LeCun et al., 1998.

    Arguments:
        seed: decides which of the 60,000 training images are for validation.
        binarise: "static" draws black and white images once; "dynamic" draws the training images
            anew in every batch, as papers that report likelihoods do.
    """

    about: ClassVar[str] = "70,000 handwritten digits, 28x28 grey; the published files"
    spec = (Factor("digit", "categorical", values=tuple("0123456789")),)

    def __init__(self, *, seed: int = 0, binarise: Binarise = "none") -> None:
        self.seed, self.binarise = seed, binarise
        self.stochastic = binarise == "dynamic"
        train, train_digits, test, test_digits = (
            read_idx(_find(name), shape=shape, sha256=sha256)
            for name, (shape, sha256) in FILES.items()
        )
        self.factors = np.concatenate([train_digits, test_digits])[:, None].astype(np.float64)
        n = len(train)
        self.split = random_split(n, test=0, validation=VALIDATION, seed=seed)
        self.split["test"] = np.arange(n, n + len(test), dtype=np.int64)
        grey = np.concatenate([train, test])[..., None]
        self.images = binarised(grey, self.split, how=binarise)


def _find(name: str) -> Path:
    candidates = [f"{folder}{name}{packed}" for folder in ("mnist/", "") for packed in (".gz", "")]
    return find_file(candidates, dataset="mnist", source=SOURCE, licence=LICENCE)


def read_idx(path: Path, *, shape: tuple[int, ...], sha256: str) -> UInt8Array:
    """Read an IDX file of bytes, packed by gzip or not, that must have this shape and checksum.

    The format is a magic number 0x00000800 + dimensions, their lengths, then the bytes.
    """
    header = struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape)
    expected = len(header) + math.prod(shape)
    with refusing_damage(path):
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            content = stream.read(expected + 1)  # never more, whatever an archive may unpack to
    if content[:4] != header[:4]:
        raise DataError(_refusal(path, f"begins with {content[:4].hex()}, not {header[:4].hex()}"))
    if len(content) < len(header):
        raise DataError(_refusal(path, "ends early"))
    if content[: len(header)] != header:
        found = struct.unpack(f">{len(shape)}I", content[4 : len(header)])
        raise DataError(_refusal(path, f"has shape {found}, not {shape}"))
    if len(content) != expected:
        short = len(content) < expected
        raise DataError(_refusal(path, "ends early" if short else "has bytes after its end"))
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(_refusal(path, "its content has another SHA-256 than the published one"))
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape)


def _refusal(path: Path, reason: str) -> str:
    return f"{path}: {reason}; it is damaged or not the published file: fetch it again"
