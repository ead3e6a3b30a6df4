"""Codes are decoded in the form in which `represent` answers, and refused in any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.errors import UsageError
from disentwine.models import MODELS
from disentwine.testing import small_grid

SHAPE = (16, 16, 1)
SYSTEMS = ("vae", "dip-vae-i", "factor-vae", "dc-ign", "wae-mmd", "wae-gan", "infogan")


@pytest.fixture(params=SYSTEMS)
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return MODELS[request.param].for_data(small_grid(SHAPE)).eval()


def test_arrays_are_codes_as_tensors_are(model: Any) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, *SHAPE), dtype=np.uint8)
    codes = model.represent(pictures)
    images = model.decode(codes)
    assert torch.equal(images, model.decode(torch.from_numpy(codes)))
    torch.testing.assert_close(model.decode(codes[0]), images[:1])
    with pytest.raises(UsageError, match="as `represent` of this model does"):
        model.decode(codes[:, :-1])


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_number_of_images_that_is_none_is_refused(model: Any, n: Any) -> None:
    if hasattr(model, "sample"):
        with pytest.raises(UsageError, match="1 or more"):
            model.sample(n)
