"""Binarized MNIST: the digits that H. Larochelle drew once and for all, for likelihoods that compare."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from disentwine.contracts.dataset import Dataset, UInt8Array
from disentwine.data.files import find_file, refusing_damage
from disentwine.data.packed import PackedImages

BINARIZED_SOURCE = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"
BINARIZED_LICENCE = (
    "that of MNIST, CC BY-SA 3.0, (c) Y. LeCun and C. Cortes; cite them and the reference below"
)
PARTS = {"train": ("train", 50_000), "validation": ("valid", 10_000), "test": ("test", 10_000)}
SIDE = 28


class BinarizedMNIST(Dataset):
    """70,000 black and white digits in their published split; which digit each is was not published.

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
    """The text file, or the same as a MATLAB file, which is quicker to read."""
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
    """(n, 28, 28) of 0 and 1 from a text of digits and spaces, or from the array X of a MATLAB file."""
    with refusing_damage(path):
        values = _read_matlab(path) if path.suffix == ".mat" else _read_text(path)
        if values.size != n * SIDE * SIDE or values.max(initial=0) > 1:
            raise ValueError(f"it does not hold {n:,} images of {SIDE}x{SIDE} zeros and ones")
    return values.reshape(n, SIDE, SIDE)


def _read_matlab(path: Path) -> UInt8Array:
    from scipy.io import loadmat

    try:
        return np.asarray(loadmat(path, variable_names=["X"])["X"], dtype=np.uint8)
    except Exception as error:  # a reader that is fed hostile bytes may raise anything
        raise ValueError(str(error) or type(error).__name__) from error


def _read_text(path: Path) -> UInt8Array:
    """Every value is one digit: what is not a space is one."""
    characters = np.frombuffer(path.read_bytes(), np.uint8)
    return characters[characters > ord(" ")] - np.uint8(ord("0"))
