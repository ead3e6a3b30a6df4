"""Images that look like training images are known, wherever they are."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.data import seen
from disentwine.data.arrays import Arrays


def test_copies_of_training_images_are_found_and_other_images_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen, "AT_ONCE", 7)  # several parts of either
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    dataset = Arrays(images=images)
    train, test = dataset.split["train"], np.setdiff1d(np.arange(60), dataset.split["train"])
    copies = test[::2]
    dataset.images[copies] = dataset.images[train[: len(copies)]]
    assert np.array_equal(seen.seen_in_training(dataset, test), np.isin(test, copies))
    assert seen.seen_in_training(dataset, train).all()
    assert len(seen.seen_in_training(dataset, test[:0])) == 0
