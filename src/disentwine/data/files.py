"""Find published files, refuse damaged ones, npz streaming; cache decoded arrays."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from disentwine.core.types import UInt8Array
from disentwine.errors import DataError

FOLDER_VARIABLE = "DISENTWINE_DATA"


def existing_files(candidates: Sequence[str]) -> list[Path]:
    """The candidates, relative to the data folder, that are there; none when no folder is set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [p for c in candidates if (p := Path(folder, c)).is_file()] if folder else []


def find_file(candidates: Sequence[str], *, dataset: str, source: str, licence: str) -> Path:
    """Return the first candidate that exists in the folder `DISENTWINE_DATA` names.

    Arguments:
        candidates: paths relative to that folder, the preferred one first.
        dataset: the name that the error calls the data set by.
        source: where the owners publish the file.
        licence: what the licence asks of whoever uses it.

    >>> find_file(["no/such.npz"], dataset="moons", source="moons.org", licence="CC0")
    Traceback (most recent call last):
    ...
    disentwine.errors.DataError: moons: no/such.npz is missing...
    """
    found = existing_files(candidates)
    if found:
        return found[0]
    folder = os.environ.get(FOLDER_VARIABLE)
    looked = (
        f"looked in the folder {folder} that {FOLDER_VARIABLE} names; put it there"
        if folder
        else f"{FOLDER_VARIABLE} is not set; put the file in a folder and set it to that folder, "
        f"e.g. export {FOLDER_VARIABLE}=~/data"
    )
    raise DataError(
        f"{dataset}: {' or '.join(candidates)} is missing ({looked}). "
        f"Its owners publish it at {source}; licence: {licence}"
    )


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn whatever a truncated or altered file raises while it is read into one DataError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read ({error}); it is damaged or not the published file: "
            f"fetch it again"
        ) from error


def load_npz(path: Path, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read the named arrays of an npz file, and nothing else of it; pickled ones are refused.

    Arguments:
        path: the file.
        keys: the arrays wanted; the others are never read.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for key in keys:
        with _member(path, key) as stream:
            arrays[key] = npy.read_array(stream, allow_pickle=False)
            _reach_end(stream)
    return arrays


def stream_npz(path: Path, key: str, *, rows: int = 8192) -> Iterator[NDArray[Any]]:
    """Yield one array of an npz file in blocks of rows, so that it need not fit into memory."""
    with _member(path, key) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read_header(stream)
        if dtype.hasobject or fortran_order or not shape:
            raise ValueError(f"'{key}' is not a plain row-major array")
        row_bytes = dtype.itemsize * int(np.prod(shape[1:]))
        for start in range(0, shape[0], rows):
            count = min(rows, shape[0] - start)
            block = stream.read(count * row_bytes)
            if len(block) < count * row_bytes:
                raise EOFError(f"'{key}' ends at row {start + len(block) // max(row_bytes, 1)}")
            yield np.frombuffer(block, dtype).reshape(count, *shape[1:])
        _reach_end(stream)


@contextmanager
def _member(path: Path, key: str) -> Iterator[IO[bytes]]:
    with refusing_damage(path), zipfile.ZipFile(path) as archive:
        present = [name.removesuffix(".npy") for name in archive.namelist()]
        if key not in present:
            raise DataError(
                f"{path} has no array '{key}' (it has {', '.join(present) or 'none'}); "
                f"it is not the published file: fetch it again"
            )
        with archive.open(f"{key}.npy") as stream:
            yield stream


def _reach_end(stream: IO[bytes]) -> None:
    # The checksum of a zip member is compared only when its last byte has been read.
    if stream.read(1):
        raise ValueError("there are bytes after the array's end")


def cache_path(name: str, sources: Sequence[Path]) -> Path:
    """Where to keep what was read from some files: in the user's cache, as their folder is theirs.

    The path tells these files from others by their folder, names and sizes.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    told = [f"{path.resolve()} {path.stat().st_size}" for path in sorted(sources)]
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
    return cache / "disentwine" / f"{name}_{digest}.npy"


def read_once(path: Path, *, shape: tuple[int, ...], read: Callable[[], UInt8Array]) -> UInt8Array:
    """The array that `path` keeps, mapped into memory; when there is none, what `read` reads, to be kept.

    Arguments:
        path: of the array, an .npy file; it appears whole or not at all.
        shape: that it must have.
        read: reads the images from the published files.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "images.npy"
    >>> first = read_once(path, shape=(2, 8, 8, 1), read=lambda: np.ones((2, 8, 8, 1), np.uint8))
    >>> int(read_once(path, shape=(2, 8, 8, 1), read=lambda: 0 * first).max())
    1
    """
    if path.is_file():
        with refusing_damage(path):
            images: UInt8Array = np.asarray(np.load(path, mmap_mode="r"))
            if images.shape != shape or images.dtype != np.uint8:
                raise ValueError(f"shape {images.shape} instead of {shape}")
        return images
    images = read()
    _keep(images, path)
    return images


def _keep(images: UInt8Array, path: Path) -> None:
    """Best effort: a folder that cannot be written only costs another reading."""
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            np.save(file, images)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
