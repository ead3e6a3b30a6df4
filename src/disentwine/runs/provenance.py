"""Digest of user data; library versions, commit."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from disentwine.core.dataset import Dataset
from disentwine.data import Folder

ROWS = 4096
"""Images at a time."""


def fingerprint(dataset: Dataset) -> str | None:
    """A digest of images, factors and split, in their order; none of data sets that no user edits.

    A row more, or rows in another order, deal other images to the test split by the same seed.

    >>> from disentwine.data import Pendulum
    >>> fingerprint(Pendulum(size=32)) is None
    True
    """
    if not isinstance(dataset, Folder):
        return None
    digest = hashlib.sha256(repr((dataset.image_shape, dataset.names)).encode())
    for part in sorted(dataset.split):
        digest.update(part.encode())
        digest.update(np.ascontiguousarray(dataset.split[part]).data)
    digest.update(np.ascontiguousarray(dataset.factors).data)
    for start in range(0, len(dataset), ROWS):
        digest.update(np.ascontiguousarray(dataset.images[start : start + ROWS]).data)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of disentwine, Python and the libraries that decide numbers."""
    packages = ("disentwine", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def changes(before: Mapping[str, Any], *, threads: int) -> list[str]:
    """What a state was saved with and is not so any more, of what decides the last digits.

    Arguments:
        before: the state of a checkpoint.
        threads: that torch computes with now.

    >>> changes({"threads": 4, "versions": versions() | {"torch": "1.0"}}, threads=4)[0][:10]
    'torch 1.0,'
    """
    old = {"threads": before.get("threads"), **before.get("versions", {})}
    now = {"threads": threads, **versions()}
    return [
        f"{name} {old[name]}, now {value}"
        for name, value in now.items()
        if old.get(name) not in (None, value)
    ]


@cache
def commit() -> str | None:
    """Where the repository of the code stands, with "+" if its files differ; None outside of one."""
    here = Path(__file__).parents[1]
    try:
        told = [
            subprocess.run(
                ["git", *words], cwd=here, capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (
                ("ls-files", "--error-unmatch", "__init__.py"),
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "."),
            )
        ]
    except (OSError, subprocess.SubprocessError):
        return None
    return told[1] + ("+" if told[2] else "")
