"""The table of image networks that a model's `network` argument chooses from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import nn

from disentwine.nn.convolutional import (
    ImageShape,
    compact_decoder,
    compact_encoder,
    normed,
    standard_decoder,
    standard_encoder,
)
from disentwine.nn.perceptron import mlp_decoder, mlp_encoder

Network = Literal["compact", "normed", "standard", "mlp"]
"""`normed` is `compact` with normalised layers: it bears three times the learning rate."""

ENCODERS: dict[Network, Callable[[ImageShape, int], nn.Module]] = {
    "compact": compact_encoder,
    "normed": partial(compact_encoder, between=normed),
    "standard": standard_encoder,
    "mlp": mlp_encoder,
}
DECODERS: dict[Network, Callable[[int, ImageShape], nn.Module]] = {
    "compact": compact_decoder,
    "normed": partial(compact_decoder, between=normed),
    "standard": standard_decoder,
    "mlp": mlp_decoder,
}
