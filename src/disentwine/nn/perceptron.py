"""Fully connected encoders and decoders, for small images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from disentwine.nn.convolutional import ImageShape

HIDDEN = (512, 256)


def perceptron(sizes: Sequence[int], *, slope: float = 0.0) -> nn.Sequential:
    """Linear layers of the given sizes with ReLU between them, leaky where a slope is given.

    >>> perceptron([784, 512, 20])[0]
    Linear(in_features=784, out_features=512, bias=True)
    """
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), nn.LeakyReLU(slope) if slope else nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def mlp_encoder(image_shape: ImageShape, out_features: int) -> nn.Sequential:
    """Flatten, then two hidden layers."""
    return nn.Sequential(nn.Flatten(), *perceptron([math.prod(image_shape), *HIDDEN, out_features]))


def mlp_decoder(in_features: int, image_shape: ImageShape) -> nn.Sequential:
    """The mirror of `mlp_encoder`; returns logits or means (n, channels, height, width)."""
    height, width, channels = image_shape
    return nn.Sequential(
        *perceptron([in_features, *reversed(HIDDEN), math.prod(image_shape)]),
        nn.Unflatten(1, (channels, height, width)),
    )
