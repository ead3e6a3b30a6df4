"""Omniglot: 1,623 handwritten characters of 50 alphabets, each drawn by 20 people."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor, random_split
from disentwine.core.types import Count, IndexArray, UInt8Array
from disentwine.data.files import find_file, load_mat, refusing_damage, stream_npz
from disentwine.data.images import Binarise, binarised, read_image, shrink
from disentwine.errors import UsageError

SIDE, DRAWERS = 105, 20
CHARACTERS = {"images_background": 964, "images_evaluation": 659}
TRAIN_AND_VALIDATION, VALIDATION = 24_345, 1_345
"""Sizes of the split of Burda et al."""

MAX_IMAGE_BYTES = 100_000
SOURCES = {
    "originals": "https://github.com/brendenlake/omniglot/tree/master/python",
    "burda": "https://github.com/yburda/iwae/tree/master/datasets/OMNIGLOT",
}
LICENCE = "MIT, (c) B. Lake; cite Human-level concept learning, Science, 2015"

Source = Literal["originals", "burda"]


class Omniglot(Dataset):
    """32,460 drawings, white ink on black, area-averaged from 105x105.

    The split is random, with the sizes that papers on likelihoods use; the test images are the same
    for every seed.

    References: Human-level concept learning through probabilistic program induction, B. Lake,
    R. Salakhutdinov and J. Tenenbaum, 2015; Importance Weighted Autoencoders, Y. Burda et al., 2016.

    Arguments:
        source: "originals" resizes the published drawings; "burda" reads the 28x28 images and the
            split of Burda et al.
        size: height and width of the images.
        binarise: as in `MNIST`.
        seed: of the choice of validation images among the training images.
    """

    about: ClassVar[str] = "32,460 drawn characters, 28x28 grey; the published files"

    def __init__(
        self,
        *,
        source: Source = "originals",
        size: Count = 28,
        binarise: Binarise = "none",
        seed: int = 0,
    ) -> None:
        if source == "burda" and size != 28:
            raise UsageError(f"size={size}: the images of source=burda are 28x28")
        self.source, self.size, self.binarise, self.seed = source, size, binarise, seed
        self.stochastic = binarise == "dynamic"
        if source == "originals":
            grey, characters = read_originals(size)
            training, test = _train_and_test(len(grey))
        else:
            grey, characters, train = read_burda(_find(["chardata.mat"], source))
            training, test = np.arange(train), np.arange(train, len(grey))
        parts = random_split(len(training), test=0, validation=VALIDATION, seed=seed)
        self.split = {
            "train": training[parts["train"]],
            "validation": training[parts["validation"]],
            "test": test,
        }
        self.images = binarised(grey[..., None], self.split, how=binarise)
        self.factors = characters[:, None].astype(np.float64)
        names = tuple(f"character {i}" for i in range(int(characters.max()) + 1))
        self.spec = (Factor("character", "categorical", values=names),)


def _train_and_test(n: int) -> tuple[IndexArray, IndexArray]:
    split = random_split(n, test=max(n - TRAIN_AND_VALIDATION, 0), validation=0, seed=0)
    return split["train"], split["test"]


def _find(names: Sequence[str], source: Source) -> Path:
    candidates = [f"{folder}{name}" for folder in ("omniglot/", "") for name in names]
    return find_file(candidates, dataset="omniglot", source=SOURCES[source], licence=LICENCE)


def read_originals(size: int) -> tuple[UInt8Array, IndexArray]:
    """The drawings of both published sets, and the character index of each."""
    images, labels, first = [], [], 0
    for name, characters in CHARACTERS.items():
        path = _find([f"{name}.zip", f"{name}.npz"], "originals")
        blocks = _unzip(path) if path.suffix == ".zip" else stream_npz(path, "images", rows=64)
        with refusing_damage(path):
            blocks_of_paper = [_shrink_paper(block, size) for block in blocks]
            drawings = 255 - np.concatenate(blocks_of_paper)
            if len(drawings) != characters * DRAWERS:
                raise ValueError(f"it holds {len(drawings)} drawings, not {characters * DRAWERS}")
        images.append(drawings)
        labels.append(first + np.repeat(np.arange(characters), DRAWERS))
        first += characters
    return np.concatenate(images), np.concatenate(labels)


def _shrink_paper(block: NDArray[Any], size: int) -> UInt8Array:
    """Resize drawings in which paper is True or 255; pixels are the fraction of paper."""
    drawings = block.reshape(-1, *block.shape[-2:])
    return shrink(drawings, size, white=1.0 if block.dtype == bool else 255.0)


def _unzip(path: Path) -> Iterator[UInt8Array]:
    """The images of an archive sorted by name, one character at a time."""
    with refusing_damage(path), zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".png"))
        for start in range(0, len(names), DRAWERS):
            block = names[start : start + DRAWERS]
            if any(archive.getinfo(name).file_size > MAX_IMAGE_BYTES for name in block):
                raise ValueError("an image in it is too large")
            yield np.stack([read_image(archive.read(name), channels=1)[..., 0] for name in block])


def read_burda(path: Path) -> tuple[UInt8Array, IndexArray, int]:
    """Images, characters, and the number of training images, from the MATLAB file."""
    prefixes, keys = ("", "test"), ("data", "target", "targetchar")
    content = load_mat(path, [prefix + key for prefix in prefixes for key in keys])
    with refusing_damage(path):
        parts = [_burda_part(content, prefix) for prefix in prefixes]
        images, alphabets = (np.concatenate([part[i] for part in parts]) for i in range(2))
    characters = np.unique(alphabets, axis=0, return_inverse=True)[1].reshape(-1)
    return images, characters.astype(np.int64), len(parts[0][0])


def _burda_part(content: dict[str, Any], prefix: str) -> tuple[UInt8Array, NDArray[Any]]:
    pixels = np.asarray(content[f"{prefix}data"], dtype=np.float64)
    # MATLAB stores images column by column.
    images = np.rint(255 * pixels.T.reshape(-1, 28, 28).transpose(0, 2, 1)).astype(np.uint8)
    alphabet = np.argmax(content[f"{prefix}target"], axis=0)
    character = np.asarray(content[f"{prefix}targetchar"]).reshape(-1)
    return images, np.stack([alphabet, character], axis=1)
