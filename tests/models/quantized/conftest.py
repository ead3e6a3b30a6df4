"""What tests of models share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
import torch

from disentwine.models import CTVAE
from disentwine.models.quantized.mcq_vae import QuantizerOptions
from disentwine.nn.transition import TransitionOptions

AUTOENCODER: dict[str, Any] = {"codebook_size": 8, "code_dim": 4, "channels": 8}
TRANSITION: dict[str, Any] = {"node_dim": 8, "edge_hidden": 4}
NONE: Mapping[str, Any] = MappingProxyType({})


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

    def build(
        *,
        autoencoder: Mapping[str, Any] = NONE,
        transition: Mapping[str, Any] = NONE,
        **options: Any,
    ) -> CTVAE:
        torch.manual_seed(0)
        return CTVAE(
            image_shape=(16, 16, 1),
            actions=("+x", "-x", "+y", "-y"),
            autoencoder=QuantizerOptions(**AUTOENCODER | autoencoder),
            transition=TransitionOptions(**TRANSITION | transition),
            **options,
        )

    return build
