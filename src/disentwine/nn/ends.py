"""The two ends of a hierarchy of layers: from pixels to its first features, and back to pixels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import DECODERS, ENCODERS, Network


class Centred(nn.Module):
    r"""$f(x) - f(\bar x)$, with the mean image $\bar x$ of the batch or, in evaluation, of the training.

    Behind it, batch normalisation sees what differs between images. Where most of an image is always the
    same, such as a white ground, the mean of f alone is many times its spread, and moves further in
    one update than the running statistics can follow; that of the images does not move at all.

    Arguments:
        network: f.
        image_shape: (height, width, channels) of x.
        momentum: how far the mean image moves towards that of each batch.

    >>> centred = Centred(nn.Flatten(), (8, 8, 1))
    >>> centred(torch.rand(16, 1, 8, 8)).mean().abs() < 1e-6
    tensor(True)
    """

    mean: Tensor
    batches: Tensor

    def __init__(
        self, network: nn.Module, image_shape: ImageShape, *, momentum: float = 0.01
    ) -> None:
        super().__init__()
        height, columns, channels = image_shape
        self.network, self.momentum = network, momentum
        self.register_buffer("mean", torch.full((1, channels, height, columns), 0.5))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean
        # The mean of a single image is that image, and would leave nothing of it.
        if self.training and len(x) > 1:
            mean = x.mean(dim=0, keepdim=True)
            self.batches += 1
            # The plain mean of the first batches, then one that forgets slowly.
            self.mean.lerp_(mean.detach(), (1 / self.batches).clamp(min=self.momentum).to(x))
        difference: Tensor = self.network(x) - self.network(mean)
        return difference


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
