"""Images that take long to read are read once, and kept as one array."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from disentwine.contracts.dataset import UInt8Array
from disentwine.data.files import refusing_damage


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
