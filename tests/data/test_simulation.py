"""Images redrawn from what a data set knows of them."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.data import Arrays, Flow
from disentwine.data.simulation import redraw
from disentwine.errors import UsageError


def test_images_are_redrawn_with_the_noise_of_their_own() -> None:
    cups = Flow(size=32)
    noisiest = np.argsort(cups.noise)[-3:]
    np.testing.assert_array_equal(redraw(cups, noisiest).images, cups.images[noisiest])
    plain = cups.simulate(cups.factors[noisiest]).images
    assert (plain != cups.images[noisiest]).any()
    moved = redraw(cups, noisiest, {"hole": 3.0})
    again = cups.simulate(cups.factors[noisiest], {"hole": 3.0}, noise=cups.noise[noisiest])
    np.testing.assert_array_equal(moved.images, again.images)
    np.testing.assert_array_equal(moved.factors, again.factors)


def test_pictures_that_nobody_can_redraw_are_refused() -> None:
    pictures = Arrays(images=np.zeros((20, 8, 8, 1), np.uint8))
    with pytest.raises(UsageError, match="Arrays cannot redraw"):
        redraw(pictures, np.arange(2))
