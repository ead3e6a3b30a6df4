"""CelebA: faces with binary attributes, from the published files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.files import find_file, load_cached, refusing_damage
from disentwine.data.images import check_format, read_image
from disentwine.errors import DataError, UsageError
from disentwine.progress import ProgressBar

SOURCE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
LICENCE = (
    "research only, not to be passed on; cite Z. Liu et al., Deep Learning Face Attributes, 2015"
)
ATTRIBUTES, PARTITION = "list_attr_celeba.txt", "list_eval_partition.txt"
FACES = "img_align_celeba"
PARTS = ("train", "validation", "test")
MAX_THREADS = 4


class CelebA(Dataset):
    """202,599 aligned faces with 40 attributes each, and the official split.

    Faces are cropped to the centre square and resized on first use. They are cached as one array beside
    the images if that folder is writable.

    Reference: Deep Learning Face Attributes in the Wild, Z. Liu et al., 2015.

    Arguments:
        size: height and width of the images in pixels.
        limit: largest number of faces: the first ones of each part of the split, in proportion.
    """

    about: ClassVar[str] = "202,599 faces with 40 binary attributes; the published files"
    concepts: ClassVar[dict[str, str]] = {}
    """Published attribute of each factor; a leading "-" negates it. All attributes when empty."""

    def __init__(self, *, size: int = 64, limit: int | None = None) -> None:
        self.size, self.limit = size, limit
        check_format(size, 3)
        if limit is not None and limit < len(PARTS):
            raise UsageError(f"limit must be at least {len(PARTS)}, got {limit}")
        table = _find(ATTRIBUTES)
        files, names, signs = read_attributes(table)
        parts = _read_partition(_find(PARTITION), files)
        rows = _first_of_each(parts, limit)
        chosen = self.concepts or {name: name for name in names}
        missing = {name.lstrip("-") for name in chosen.values()} - set(names)
        if missing:
            raise DataError(
                f"{table} has no attribute '{min(missing)}': it is not the official file"
            )
        self.spec = tuple(Factor(name, "binary") for name in chosen)
        self.factors = np.stack(
            [_column(signs[rows], names, attribute) for attribute in chosen.values()], axis=1
        )
        self.split = {
            part: np.flatnonzero(parts[rows] == i).astype(np.int64) for i, part in enumerate(PARTS)
        }
        faces = table.parent / FACES
        if not faces.is_dir():
            raise DataError(
                f"celeba: there is no folder {faces}; its owners publish it at {SOURCE}"
            )
        self.images = _faces(faces, [files[row] for row in rows], size)


class CelebASmile(CelebA):
    """CelebA's gender, smile, open eyes and open mouth: the concepts of CausalVAE."""

    about: ClassVar[str] = "CelebA with CausalVAE's four concepts of a smile"
    concepts: ClassVar[dict[str, str]] = {
        "gender": "Male",
        "smile": "Smiling",
        "eyes_open": "-Narrow_Eyes",
        "mouth_open": "Mouth_Slightly_Open",
    }


class CelebABeard(CelebA):
    """CelebA's age, gender, baldness and beard: the concepts of CausalVAE."""

    about: ClassVar[str] = "CelebA with CausalVAE's four concepts of a beard"
    concepts: ClassVar[dict[str, str]] = {
        "age": "-Young",
        "gender": "Male",
        "bald": "Bald",
        "beard": "-No_Beard",
    }


def read_attributes(path: Path) -> tuple[list[str], list[str], NDArray[np.int8]]:
    """File names, attribute names, and +1 or -1 for each file and attribute."""
    with refusing_damage(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        names = lines[1].split()
        rows = [line.split() for line in lines[2:] if line.strip()]
        signs = np.array([row[1:] for row in rows], dtype=np.int8)
        if signs.shape != (int(lines[0]), len(names)) or set(np.unique(signs)) - {-1, 1}:
            raise ValueError(f"{len(rows)} rows do not match the header")
    return [row[0] for row in rows], names, signs


def _find(name: str) -> Path:
    return find_file([f"celeba/{name}", name], dataset="celeba", source=SOURCE, licence=LICENCE)


def _read_partition(path: Path, files: Sequence[str]) -> NDArray[np.int64]:
    with refusing_damage(path):
        stated = dict(line.split() for line in path.read_text().splitlines() if line.strip())
        try:
            parts = np.array([int(stated[file]) for file in files])
        except KeyError as error:
            raise ValueError(f"it does not name {error}") from error
        if set(np.unique(parts)) - {0, 1, 2}:
            raise ValueError("parts other than 0, 1 and 2")
    return parts


def _first_of_each(parts: NDArray[np.int64], limit: int | None) -> NDArray[np.int64]:
    """The rows to read, in order."""
    if limit is None or limit >= len(parts):
        return np.arange(len(parts))
    share = limit / len(parts)
    found = [np.flatnonzero(parts == i) for i in range(len(PARTS))]
    return np.sort(np.concatenate([rows[: max(1, round(share * len(rows)))] for rows in found]))


def _column(signs: NDArray[np.int8], names: Sequence[str], attribute: str) -> FloatArray:
    values = signs[:, list(names).index(attribute.lstrip("-"))].astype(np.float64)
    return (1 - values) / 2 if attribute.startswith("-") else (1 + values) / 2


def _faces(folder: Path, files: Sequence[str], size: int) -> UInt8Array:
    """All faces, from the cached array if there is one."""
    shape = (len(files), size, size, 3)

    def read_all() -> UInt8Array:
        images = np.empty(shape, np.uint8)

        def read(row: int) -> None:
            images[row] = read_image(folder / files[row], size=size)

        with (
            ProgressBar("reading faces", total=len(files)) as bar,
            ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool,
        ):
            for _ in pool.map(read, range(len(files))):
                bar.advance()
        return images

    cache = folder.with_name(f"{FACES}_{size}_{len(files)}.npy")
    return load_cached(cache, shape=shape, read=read_all)
