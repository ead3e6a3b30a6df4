"""Which images of a data set look exactly like one that is learnt from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.dataset import Dataset, IndexArray

AT_ONCE = 4096


def seen_in_training(dataset: Dataset, images: IndexArray) -> NDArray[np.bool_]:
    """Whether a training image has the same pixels, (n,).

    Images of different factors may look alike: a square that is turned by 90 degrees, a figure whose
    weapon is not in its hand yet. All training images are looked through, which takes seconds.

    Arguments:
        dataset: whose "train" split is learnt from.
        images: (n,) which to ask about.

    >>> from disentwine.data import Arrays
    >>> pictures = np.zeros((20, 8, 8, 1), np.uint8)
    >>> pictures[7] = 255
    >>> dataset = Arrays(images=pictures)
    >>> dataset.split = {**dataset.split, "train": np.arange(7)}
    >>> seen_in_training(dataset, np.array([7, 8]))
    array([False,  True])
    """
    train = np.sort(np.asarray(dataset.split["train"]))
    learnt = {look for part in _parts(train) for look in _looks(dataset, part)}
    asked = [look in learnt for part in _parts(images) for look in _looks(dataset, part)]
    return np.array(asked, dtype=bool)


def _parts(images: IndexArray) -> list[IndexArray]:
    return [images[first : first + AT_ONCE] for first in range(0, len(images), AT_ONCE)]


def _looks(dataset: Dataset, images: IndexArray) -> list[int]:
    """A number for what each image looks like."""
    return [hash(picture.tobytes()) for picture in dataset.images[images]]
