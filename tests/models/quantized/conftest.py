"""What tests of models share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from disentwine.models import CTVAE


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Small networks are quickest on one thread, above all where tests share the processor."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small() -> Callable[..., CTVAE]:
    """Builds a small CT-VAE of four actions, always with the same weights."""

    def build(**options: Any) -> CTVAE:
        torch.manual_seed(0)
        return CTVAE(
            **{
                "image_shape": (16, 16, 1),
                "actions": ("+x", "-x", "+y", "-y"),
                "codes": 8,
                "dimensions": 4,
                "width": 8,
                "layer_width": 8,
                "hidden": 4,
            }
            | options
        )

    return build
