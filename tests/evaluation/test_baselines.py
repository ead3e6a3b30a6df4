"""Representations that need no network: fitted to training images, and to these alone."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.evaluation.baselines import BASELINES, baseline_latents, flat

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (60, 6, 6, 1), dtype=np.uint8)
FACTORS = RNG.normal(size=(60, 2))


def codes(name: str, images: np.ndarray, **options: int) -> np.ndarray:
    dataset = Arrays(images=images, factors=FACTORS, names=["a", "b"])
    return baseline_latents(
        name, dataset, dataset.split["test"][:5], **({"components": 3} | options)
    )


@pytest.mark.parametrize("name", ["pca", "ica"])
def test_they_are_fitted_to_the_training_split_alone(name: str) -> None:
    split = Arrays(images=IMAGES, factors=FACTORS, names=["a", "b"]).split
    before = codes(name, IMAGES)
    for part, same in (("test", True), ("train", False)):
        changed = IMAGES.copy()
        rows = split[part][5:]
        changed[rows] = 255 - changed[rows] // 2
        assert np.allclose(codes(name, changed), before, atol=1e-4) == same


def test_pca_is_the_projection_on_the_largest_singular_vectors() -> None:
    dataset = Arrays(images=IMAGES, factors=FACTORS, names=["a", "b"])
    train, test = (flat(IMAGES[dataset.split[part]]) for part in ("train", "test"))
    mean = train.mean(axis=0)
    vectors = np.linalg.svd(train - mean)[2][:3]
    assert np.allclose(abs(codes("pca", IMAGES)), abs((test[:5] - mean) @ vectors.T), atol=1e-3)


def test_pixels_and_truth_are_what_they_are_called() -> None:
    test = Arrays(images=IMAGES, factors=FACTORS, names=["a", "b"]).split["test"][:5]
    assert np.array_equal(codes("pixels", IMAGES), flat(IMAGES[test]))
    assert np.array_equal(codes("ground-truth", IMAGES), FACTORS[test])


@pytest.mark.parametrize("name", BASELINES)
def test_no_components_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="components: give 1 or more, got 0"):
        codes(name, IMAGES, components=0)
