"""Telling whether a user's files are still those that a run learnt from."""

from __future__ import annotations

import hashlib

import numpy as np

from disentwine.contracts.dataset import Dataset
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
