"""Published files: find, read safely, stream, and cache decoded arrays."""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from disentwine.core.types import UInt8Array
from disentwine.errors import DataError

FOLDER_VARIABLE = "DISENTWINE_DATA"


def existing_files(candidates: Sequence[str]) -> list[Path]:
    """The candidates that exist in the data folder; empty if the folder is not set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [p for c in candidates if (p := Path(folder, c)).is_file()] if folder else []


def find_file(candidates: Sequence[str], *, dataset: str, source: str, licence: str) -> Path:
    """Find the first candidate that exists in the folder `DISENTWINE_DATA`.

    Arguments:
        candidates: paths relative to that folder, the preferred one first.
        dataset: its name, for the error.
        source: URL of the publisher.
        licence: terms of use.

    >>> find_file(["no/such.npz"], dataset="moons", source="moons.org", licence="CC0")
    Traceback (most recent call last):
    ...
    disentwine.errors.DataError: moons: no/such.npz is missing...
    """
    found = existing_files(candidates)
    if found:
        return found[0]
    folder = os.environ.get(FOLDER_VARIABLE)
    location = (
        f"looked in the folder {folder} that {FOLDER_VARIABLE} names; put it there"
        if folder
        else f"{FOLDER_VARIABLE} is not set; put the file in a folder and set it to that folder, "
        f"e.g. export {FOLDER_VARIABLE}=~/data"
    )
    raise DataError(
        f"{dataset}: {' or '.join(candidates)} is missing ({location}). "
        f"Its owners publish it at {source}; licence: {licence}"
    )


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Context that raises errors of reading damaged files as `DataError`."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read ({error}); it is damaged or not the published file: "
            f"fetch it again"
        ) from error


def load_npz(path: Path, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file; pickled arrays are refused.

    Arguments:
        path: the file.
        keys: names of the arrays to read.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for key in keys:
        with _member(path, key) as stream:
            arrays[key] = npy.read_array(stream, allow_pickle=False)
            _check_end(stream)
    return arrays


def stream_npz(path: Path, key: str, *, rows: int = 8192) -> Iterator[NDArray[Any]]:
    """Yield an array of an npz file in blocks of rows, for arrays larger than memory."""
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
        _check_end(stream)


def load_mat(path: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read arrays of a MATLAB file (version 5 to 7.2).

    Arguments:
        path: the file.
        names: names of the arrays; all must exist.
    """
    from scipy.io import loadmat

    with refusing_damage(path):
        try:
            content = loadmat(path, variable_names=list(names))
        except OSError:
            raise
        except Exception as error:  # scipy may raise anything on damaged files
            raise ValueError(str(error) or type(error).__name__) from error
        if missing := [name for name in names if name not in content]:
            raise ValueError(f"it has no array '{missing[0]}'")
        arrays = {name: np.asarray(content[name]) for name in names}
        if wrong := [name for name, array in arrays.items() if array.dtype.kind not in "biuf"]:
            raise ValueError(f"its array '{wrong[0]}' holds no numbers")
    return arrays


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file, compressed with gzip or not."""
    with refusing_damage(path):
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as stream:
            yield cast("BinaryIO", stream)


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    """Read the last `size` bytes of a stream; fewer or more raise `ValueError`.

    >>> from io import BytesIO
    >>> read_exactly(BytesIO(b"four"), 4)
    b'four'
    """
    content = stream.read(size + 1)  # bounded, so that a decompression bomb does no harm
    if len(content) != size:
        raise ValueError("it ends early" if len(content) < size else "it has bytes after its end")
    return content


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


def _check_end(stream: IO[bytes]) -> None:
    # The checksum of a zip member is checked only after its last byte is read.
    if stream.read(1):
        raise ValueError("there are bytes after the array's end")


def cache_path(name: str, sources: Sequence[Path]) -> Path:
    """Path in the user's cache for an array decoded from files.

    The path depends on the folder, names and sizes of these files.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    identities = [f"{path.resolve()} {path.stat().st_size}" for path in sorted(sources)]
    digest = hashlib.sha256("\n".join(identities).encode()).hexdigest()[:12]
    return cache / "disentwine" / f"{name}_{digest}.npy"


def load_cached(
    path: Path, *, shape: tuple[int, ...], read: Callable[[], UInt8Array]
) -> UInt8Array:
    """Memory-map cached images; if there are none, decode the images with `read` and cache them.

    Arguments:
        path: of the .npy cache file, which is written atomically.
        shape: required shape of the array.
        read: decodes the images of the published files.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "images.npy"
    >>> first = load_cached(path, shape=(2, 8, 8, 1), read=lambda: np.ones((2, 8, 8, 1), np.uint8))
    >>> int(load_cached(path, shape=(2, 8, 8, 1), read=lambda: 0 * first).max())
    1
    """
    if path.is_file():
        with refusing_damage(path):
            images: UInt8Array = np.asarray(np.load(path, mmap_mode="r"))
            if images.shape != shape or images.dtype != np.uint8:
                raise ValueError(f"shape {images.shape} instead of {shape}")
        return images
    images = read()
    _cache(images, path)
    return images


def _cache(images: UInt8Array, path: Path) -> None:
    """Write the cache; errors of writing are ignored."""
    unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            np.save(file, images)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
