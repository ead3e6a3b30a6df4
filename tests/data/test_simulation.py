"""Images redrawn from what a data set knows of them."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.data import Arrays, Flow, Pendulum
from disentwine.data.simulation import rerender
from disentwine.errors import UsageError


def test_images_are_redrawn_with_the_noise_of_their_own() -> None:
    cups = Flow(size=32)
    noisiest = np.argsort(cups.noise)[-3:]
    np.testing.assert_array_equal(rerender(cups, noisiest).images, cups.images[noisiest])
    plain = cups.simulate(cups.factors[noisiest]).images
    assert (plain != cups.images[noisiest]).any()
    moved = rerender(cups, noisiest, {"hole": 3.0})
    again = cups.simulate(cups.factors[noisiest], {"hole": 3.0}, noise=cups.noise[noisiest])
    np.testing.assert_array_equal(moved.images, again.images)
    np.testing.assert_array_equal(moved.factors, again.factors)


def test_pictures_that_nobody_can_redraw_are_refused() -> None:
    images = Arrays(images=np.zeros((20, 8, 8, 1), np.uint8))
    with pytest.raises(UsageError, match="Arrays is not a simulator"):
        rerender(images, np.arange(2))


@pytest.mark.parametrize("cls", [Pendulum, Flow])
def test_images_are_rendered_on_first_use_and_shared_by_copies(cls: type[Pendulum | Flow]) -> None:
    scenes = cls(size=32)
    shape = scenes.image_shape
    copies = scenes.with_labels(0.5), scenes.with_transitions(factors=scenes.names[:1])
    assert (len(scenes), *shape) == scenes.rendering.shape
    assert "images" not in vars(scenes.rendering)
    truth = scenes.simulate(scenes.factors[:3], noise=getattr(scenes, "noise", np.zeros(3))[:3])
    scenes.factors[:] = np.nan
    np.testing.assert_array_equal(scenes.images[:3], truth.images)
    assert all(copy.images is scenes.images for copy in copies)
