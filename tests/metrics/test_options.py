"""Options of metrics that make no sense are refused by name, not taken for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics.disentanglement.gaps import mig, sap
from disentwine.metrics.disentanglement.shared_factor import z_diff
from disentwine.metrics.images import reconstruction_error

V = np.array([[a, b] for a in range(4) for b in range(4)], float)


@pytest.mark.parametrize(
    ("metric", "options", "told"),
    [
        (z_diff, {"train": 0}, "train: give 1 or more, got 0"),
        (z_diff, {"pairs": 0}, "pairs: give 1 or more"),
        (z_diff, {"test": 1.5}, "test: give 1 or more, got 1.5"),
        (z_diff, {"protocol": "papr"}, "protocol: there is no 'papr'. Did you mean 'paper'"),
        (mig, {"bins": 0}, "bins: give 1 or more"),
        (sap, {"kinds": ["binary", "catgorical"]}, "Did you mean 'categorical'"),
    ],
)
def test_what_is_no_option_is_refused(
    metric: Callable[..., Any], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        metric(V, V, **options)


def test_pixels_on_another_scale_are_refused() -> None:
    images = np.ones((2, 4, 4, 1))
    with pytest.raises(UsageError, match="float64 and reconstructions float64; give both as uint8"):
        reconstruction_error(images, images)  # type: ignore[arg-type]
