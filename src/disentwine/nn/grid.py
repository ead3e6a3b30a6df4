"""Convolutions between images and small grids of vectors."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

from disentwine.nn.convolutional import CropTo, ImageShape, PadToMultiple, normed

Reduction = Literal[4, 8, 16]
"""Pixels of an image's side for one of the grid's."""


class Sum(nn.ModuleList):
    """What several modules make of the same, added."""

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self
        total: Tensor = first(x)
        for other in others:
            total = total + other(x)
        return total


def grid_of(image_shape: ImageShape, reduction: Reduction) -> tuple[int, int]:
    """Rows and columns of the grid.

    >>> grid_of((64, 60, 3), 16)
    (4, 4)
    """
    height, width, _ = image_shape
    return math.ceil(height / reduction), math.ceil(width / reduction)


def grid_encoder(
    image_shape: ImageShape, out_channels: int, *, reduction: Reduction, width: int
) -> nn.Sequential:
    """Images to (n, out_channels, rows, columns); 4x4 pixels are folded into channels first.

    A linear map of each position's own pixels is added: it learns colours and places in few updates,
    and leaves to the convolutions what is not linear.

    >>> import torch
    >>> encoder = grid_encoder((64, 64, 3), 32, reduction=8, width=48)
    >>> encoder(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 32, 8, 8])
    """
    channels = image_shape[2]
    convolutions = nn.Sequential(
        nn.Conv2d(channels, width, 4, 4),
        *(
            layer
            for _ in range(_halvings(reduction))
            for layer in (*normed(width), nn.Conv2d(width, width, 4, 2, 1))
        ),
        _residual(width),
        *normed(width),
        nn.Conv2d(width, out_channels, 1),
    )
    linear = nn.Conv2d(channels, out_channels, reduction, reduction)
    return nn.Sequential(PadToMultiple(reduction), Sum([linear, convolutions]))


def grid_decoder(
    in_channels: int, image_shape: ImageShape, *, reduction: Reduction, width: int
) -> nn.Sequential:
    """The mirror of `grid_encoder`; returns logits or means (n, channels, height, width)."""
    height, columns, channels = image_shape
    convolutions = nn.Sequential(
        nn.Conv2d(in_channels, width, 3, padding=1),
        _residual(width),
        *(
            layer
            for _ in range(_halvings(reduction))
            for layer in (*normed(width), nn.ConvTranspose2d(width, width, 4, 2, 1))
        ),
        *normed(width),
        *(nn.Conv2d(width, 16 * channels, 3, padding=1), nn.PixelShuffle(4)),
    )
    linear = nn.Sequential(
        nn.Conv2d(in_channels, reduction**2 * channels, 1), nn.PixelShuffle(reduction)
    )
    return nn.Sequential(Sum([linear, convolutions]), CropTo(height, columns))


def _residual(width: int) -> Sum:
    """x + f(x), with a 3x3 and a 1x1 convolution for f."""
    f = nn.Sequential(
        *(*normed(width), nn.Conv2d(width, width, 3, padding=1)),
        *(nn.SiLU(), nn.Conv2d(width, width, 1)),
    )
    return Sum([nn.Identity(), f])


def _halvings(reduction: Reduction) -> int:
    return int(math.log2(reduction)) - 2
