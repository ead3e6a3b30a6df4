"""Shapes3D from the published HDF5 file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from disentwine.core.dataset import Dataset, tenths
from disentwine.core.types import UInt8Array
from disentwine.data.files import existing_files, find_file, refusing_damage
from disentwine.data.lazy_images import every_combination
from disentwine.data.synthetic.shapes3d import SIDE, grid, specification
from disentwine.errors import DataError, StorageError
from disentwine.progress import ProgressBar

SOURCE = "https://github.com/google-deepmind/3d-shapes"
LICENCE = "Apache 2.0; its authors ask to be cited (Burgess and Kim, 2018)"
PUBLISHED = ["shapes3d/3dshapes.h5", "3dshapes.h5"]
UNPACKED = ["shapes3d/3dshapes.npy", "3dshapes.npy"]
VALUES = grid()
AT_ONCE = 4000


class Shapes3DAuthors(Dataset):
    """480,000 rendered images of a solid in a room, read from the published file.

    The file is unpacked once to an array of 5.9 GB beside it, which is memory-mapped; this requires
    h5py (`pip install h5py`). The split is that of `Shapes3D` with the same seed.

    Reference: 3D Shapes Dataset, C. Burgess and H. Kim, 2018.

    Arguments:
        seed: of the split.
    """

    about: ClassVar[str] = "Shapes3D: hues, scale, shape, orientation (the published file)"
    spec = specification(VALUES)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.factors = every_combination(*VALUES)
        n = len(self.factors)
        self.images = open_images(n)
        self.split = tenths(n, seed=seed)


def open_images(n: int) -> UInt8Array:
    """The unpacked array (n, 64, 64, 3); the published file is unpacked on first use."""
    unpacked = existing_files(UNPACKED)
    if not unpacked:
        published = find_file(PUBLISHED, dataset="shapes3d-authors", source=SOURCE, licence=LICENCE)
        unpacked = [unpack(published, n=n)]
    with refusing_damage(unpacked[0]):
        images: UInt8Array = np.asarray(np.load(unpacked[0], mmap_mode="r"))
        if images.shape != (n, SIDE, SIDE, 3) or images.dtype != np.uint8:
            raise ValueError(f"{images.dtype} of {images.shape}, not {n:,} images")
    return images


def unpack(path: Path, *, n: int) -> Path:
    """Unpack the images block by block; the array is written atomically."""
    try:
        import h5py
    except ImportError as error:
        raise DataError(f"{path} is HDF5: install h5py to unpack it, pip install h5py") from error
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        with refusing_damage(path), h5py.File(path, "r") as file:
            _check(file, n)
            try:
                out = np.lib.format.open_memmap(
                    unfinished, mode="w+", dtype=np.uint8, shape=(n, SIDE, SIDE, 3)
                )
            except OSError as error:
                raise StorageError(f"{unfinished}: cannot be written ({error.strerror})") from error
            with ProgressBar("unpacking images", total=-(-n // AT_ONCE)) as bar:
                for start in range(0, n, AT_ONCE):
                    out[start : start + AT_ONCE] = file["images"][start : start + AT_ONCE]
                    bar.advance()
            out.flush()
        unfinished.replace(path.with_suffix(".npy"))
    finally:
        unfinished.unlink(missing_ok=True)
    return path.with_suffix(".npy")


def _check(file: Any, n: int) -> None:
    """Refuse a file whose arrays are not from Shapes3D."""
    for key in ("images", "labels"):
        if key not in file:
            raise ValueError(f"it has no array '{key}'")
    if file["images"].shape != (n, SIDE, SIDE, 3) or file["images"].dtype != np.uint8:
        raise ValueError(f"its images are {file['images'].dtype} of {file['images'].shape}")
    labels = file["labels"][:]
    expected = every_combination(*VALUES)
    if labels.shape != expected.shape or not np.allclose(labels, expected, atol=1e-3):
        raise ValueError("its labels are not every combination of the six factors in their order")
