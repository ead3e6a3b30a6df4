"""Convolutions between images and small grids of vectors."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

from disentwine.nn.convolutional import CropTo, ImageShape, PadToMultiple

Reduction = Literal[4, 8, 16]
"""Pixels of an image's side for one of the grid's."""


class Residual(nn.Module):
    """x + f(x), with a 3x3 and a 1x1 convolution for f."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.f = nn.Sequential(
            *(nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)),
            *(nn.ReLU(), nn.Conv2d(width, width, 1)),
        )

    def forward(self, x: Tensor) -> Tensor:
        change: Tensor = self.f(x)
        return x + change


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

    >>> import torch
    >>> encoder = grid_encoder((64, 64, 3), 32, reduction=8, width=48)
    >>> encoder(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 32, 8, 8])
    """
    return nn.Sequential(
        PadToMultiple(reduction),
        nn.Conv2d(image_shape[2], width, 4, 4),
        *(
            layer
            for _ in range(_halvings(reduction))
            for layer in (nn.ReLU(), nn.Conv2d(width, width, 4, 2, 1))
        ),
        Residual(width),
        *(nn.ReLU(), nn.Conv2d(width, out_channels, 1)),
    )


def grid_decoder(
    in_channels: int, image_shape: ImageShape, *, reduction: Reduction, width: int
) -> nn.Sequential:
    """The mirror of `grid_encoder`; returns logits or means (n, channels, height, width)."""
    height, columns, channels = image_shape
    return nn.Sequential(
        nn.Conv2d(in_channels, width, 3, padding=1),
        Residual(width),
        *(
            layer
            for _ in range(_halvings(reduction))
            for layer in (nn.ReLU(), nn.ConvTranspose2d(width, width, 4, 2, 1))
        ),
        *(nn.ReLU(), nn.Conv2d(width, 16 * channels, 3, padding=1), nn.PixelShuffle(4)),
        CropTo(height, columns),
    )


def _halvings(reduction: Reduction) -> int:
    return int(math.log2(reduction)) - 2
