"""MNIST, and the binarized MNIST of H. Larochelle."""

from __future__ import annotations

import hashlib
import math
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np

from disentwine.core.dataset import Dataset, Factor, random_split
from disentwine.core.types import UInt8Array
from disentwine.data.files import (
    find_file,
    load_mat,
    open_binary,
    read_exactly,
    refusing_damage,
)
from disentwine.data.images import Binarise, binarised
from disentwine.data.lazy_images import PackedImages

BINARIZED_SOURCE = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"

BINARIZED_LICENCE = (
    "that of MNIST, CC BY-SA 3.0, (c) Y. LeCun and C. Cortes; cite them and the reference below"
)

PARTS = {"train": ("train", 50_000), "validation": ("valid", 10_000), "test": ("test", 10_000)}

SIDE = 28


class BinarizedMNIST(Dataset):
    """70,000 binary images of digits with the published split; digit labels were not published.

    Reference: On the Quantitative Analysis of Deep Belief Networks, R. Salakhutdinov and I. Murray,
    2008; The Neural Autoregressive Distribution Estimator, H. Larochelle and I. Murray, 2011.
    """

    about: ClassVar[str] = "70,000 digits in black and white, 28x28; the published files"
    spec = ()

    def __init__(self) -> None:
        parts = [read_part(find_part(name), n=n) for name, n in PARTS.values()]
        n = sum(map(len, parts))
        self.images = PackedImages.pack(parts, n=n, height=SIDE, width=SIDE)
        self.factors = np.empty((n, 0))
        ends = np.cumsum([len(part) for part in parts])
        self.split = {
            name: np.arange(end - len(part), end, dtype=np.int64)
            for name, part, end in zip(PARTS, parts, ends, strict=True)
        }


def find_part(name: str) -> Path:
    """Find the MATLAB file, which is faster to read, or the text file."""
    stem = f"binarized_mnist_{name}"
    candidates = [
        f"{folder}{stem}.{suffix}"
        for folder in ("binarized_mnist/", "")
        for suffix in ("mat", "amat")
    ]
    return find_file(
        candidates, dataset="binarized-mnist", source=BINARIZED_SOURCE, licence=BINARIZED_LICENCE
    )


def read_part(path: Path, *, n: int) -> UInt8Array:
    """Read (n, 28, 28) of 0 and 1: a text of digits and spaces, or the array X of a MATLAB file."""
    with refusing_damage(path):
        is_matlab = path.suffix == ".mat"
        values = load_mat(path, ["X"])["X"].astype(np.uint8) if is_matlab else _read_text(path)
        if values.size != n * SIDE * SIDE or values.max(initial=0) > 1:
            raise ValueError(f"it does not hold {n:,} images of {SIDE}x{SIDE} zeros and ones")
    return values.reshape(n, SIDE, SIDE)


def _read_text(path: Path) -> UInt8Array:
    """Each character that is not white space is one pixel."""
    characters = np.frombuffer(path.read_bytes(), np.uint8)
    return characters[characters > ord(" ")] - np.uint8(ord("0"))


SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
"""PyTorch's mirror; the authors no longer publish the files."""

LICENCE = "CC BY-SA 3.0, (c) Y. LeCun and C. Cortes; cite them"

VALIDATION = 5_000


# SHA-256 of the decompressed files, as mirrors compress them differently.
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
        seed: of the choice of validation images among the 60,000 training images.
        binarise: "static" samples binary images once; "dynamic" samples the training images again
            in every batch, as papers that report likelihoods do.
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
    """Read an IDX file of bytes, with or without gzip, and check its shape and checksum.

    The format is a magic number 0x00000800 + number of axes, their lengths, then the bytes.
    """
    header = struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape)
    with open_binary(path) as stream:
        found = stream.read(len(header))
        if found[:4] != header[:4]:
            raise ValueError(f"it begins with {found[:4].hex()}, not {header[:4].hex()}")
        if len(found) == len(header) and found != header:
            lengths = struct.unpack(f">{len(shape)}I", found[4:])
            raise ValueError(f"it has shape {lengths}, not {shape}")
        content = read_exactly(stream, math.prod(shape))
        if hashlib.sha256(found + content).hexdigest() != sha256:
            raise ValueError("its content has another SHA-256 than the published one")
    return np.frombuffer(content, np.uint8).reshape(shape)
