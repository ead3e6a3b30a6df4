"""The two ends of a hierarchy of layers: from pixels to its first features, and back to pixels."""

from __future__ import annotations

import math

from torch import nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import DECODERS, ENCODERS, Network


def pixels_to_features(
    network: Network, image_shape: ImageShape, width: int
) -> tuple[nn.Module, int]:
    """A module, and how many features it makes of an image: its pixels, or `width` that convolutions
    find.

    >>> import torch
    >>> front, features = pixels_to_features("compact", (64, 64, 3), 256)
    >>> front(torch.zeros(2, 3, 64, 64)).shape, features
    (torch.Size([2, 256]), 256)
    """
    if network == "mlp":
        return nn.Flatten(), math.prod(image_shape)
    return nn.Sequential(ENCODERS[network](image_shape, width), nn.LeakyReLU(0.1)), width


def features_to_pixels(network: Network, width: int, image_shape: ImageShape) -> nn.Module:
    """Back from `width` features: one linear map, or convolutions.

    >>> import torch
    >>> features_to_pixels("mlp", 512, (28, 28, 1))(torch.zeros(2, 512)).shape
    torch.Size([2, 1, 28, 28])
    """
    if network == "mlp":
        height, columns, channels = image_shape
        linear = nn.Linear(width, math.prod(image_shape))
        return nn.Sequential(linear, nn.Unflatten(1, (channels, height, columns)))
    return DECODERS[network](width, image_shape)
