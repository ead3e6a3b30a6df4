"""Grey images as black and white ones, once or in every batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from disentwine.contracts.dataset import IndexArray, UInt8Array

Binarise = Literal["none", "static", "dynamic"]
"""Leave images grey; draw all of them once; or draw training images anew in every batch."""


def binarised(images: UInt8Array, split: Mapping[str, IndexArray], *, how: Binarise) -> UInt8Array:
    """Images of which pixels are white with the probability that their brightness says.

    What is drawn here is the same at every call, so that scores compare. With "dynamic" this draws
    the validation and test images only; the data set must say that it is `stochastic`, and batches
    draw the training images.

    Arguments:
        images: (n, height, width, channels), grey.
        split: indices of the "train" images, and others.
        how: which images to draw.

    >>> grey = np.full((4, 2, 2, 1), 128, np.uint8)
    >>> split = {"train": np.array([0, 1]), "test": np.array([2, 3])}
    >>> drawn = binarised(grey, split, how="dynamic")
    >>> np.unique(drawn[:2]).tolist(), np.unique(drawn[2:]).tolist()
    ([128], [0, 255])
    """
    if how == "none":
        return images
    noise = np.random.default_rng(0).integers(0, 255, images.shape, dtype=np.uint8)
    drawn = np.where(noise < images, np.uint8(255), np.uint8(0))  # white at 255, black at 0
    if how == "dynamic":
        drawn[split["train"]] = images[split["train"]]
    return drawn
