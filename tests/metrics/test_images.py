"""Gradient energy beside that of real images."""

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics.images import sharpness


def pictures(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)


def blurred(images: np.ndarray) -> np.ndarray:
    x = images.astype(float)
    x = (x + np.roll(x, 1, axis=1) + np.roll(x, 1, axis=2)) / 3
    return x.astype(np.uint8)


def test_it_is_the_ratio_of_squared_differences_by_hand() -> None:
    a, b = pictures(0), pictures(1)

    def energy(x: np.ndarray) -> float:
        down = [(x[:, i + 1] - x[:, i]) ** 2 for i in range(x.shape[1] - 1)]
        right = [(x[:, :, j + 1] - x[:, :, j]) ** 2 for j in range(x.shape[2] - 1)]
        return float(np.mean(down) + np.mean(right))

    found = sharpness(a, b)
    assert found.value == pytest.approx(energy(a / 255) / energy(b / 255), rel=1e-6)
    assert found.n == 6


def test_blur_is_less_noise_is_more_and_the_truth_is_one() -> None:
    flat = np.kron(np.array([[0, 200], [200, 0]], np.uint8), np.ones((6, 6), np.uint8))[
        None, ..., None
    ]
    noise = np.random.default_rng(0).integers(0, 30, flat.shape, dtype=np.uint8)
    assert sharpness(flat, flat).value == 1
    assert sharpness(blurred(flat), flat).value < 0.8
    assert sharpness(flat + noise, flat).value > 1


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="same shape"):
        sharpness(pictures()[:2], pictures())
    with pytest.raises(UsageError, match="no edges"):
        sharpness(pictures(), np.zeros_like(pictures()))
