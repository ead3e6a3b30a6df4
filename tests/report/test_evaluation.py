"""The numbers mean what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics.activity import active_units
from disentwine.metrics.reconstruction import reconstruction_error


def test_black_for_white_costs_one_and_the_same_image_nothing() -> None:
    black = np.zeros((3, 4, 4, 1), np.uint8)
    assert reconstruction_error(black, black + 255).value == 1
    assert reconstruction_error(black, black).value == 0
    half = black.copy()
    half[:, :2] = 255
    assert reconstruction_error(black, half).value == pytest.approx(0.5)
    assert reconstruction_error(black, half).n == 3


def test_images_that_do_not_match_are_refused() -> None:
    images = np.zeros((3, 4, 4, 1), np.uint8)
    with pytest.raises(UsageError, match="same shape"):
        reconstruction_error(images, images[:2])
    with pytest.raises(UsageError, match="at least one"):
        reconstruction_error(images[:0], images[:0])


def test_only_units_that_vary_are_active() -> None:
    codes = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 0.05, 0.5] + [0, 9, 0]
    score = active_units(codes)
    assert (score.value, score.details["alive"]) == (2, [True, False, True])
