"""Decoders in layers: each paints colour and opacity from its own few concepts."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape


def fourier_features(t: Tensor, frequencies: int) -> Tensor:
    r"""t itself, and $\sin(2^j \pi t / 4), \cos(2^j \pi t / 4)$: networks learn slow functions of these
    that are fast functions of t.

    >>> fourier_features(torch.zeros(5, 2), 3).shape
    torch.Size([5, 14])
    """
    angles = [t * (2**j * math.pi / 4) for j in range(frequencies)]
    return torch.cat([t, *(wave(a) for a in angles for wave in (torch.sin, torch.cos))], dim=-1)


class Painter(nn.Module):
    r"""One layer of an image: $o_p = b_p + \sum_j W_{pj} h_j(w_j \cdot z)$ for each pixel p, its first
    channels being colour and the last opacity (after a sigmoid).

    Each $h_j$ sees the concepts along one learnt direction only. Where directions were seen
    apart, the sum also holds for combinations that never occurred together: the two ends of a bar can
    be moved apart though they always moved together.

    Arguments:
        concepts: how many numbers the layer is painted from; it has as many directions.
        image_shape: (height, width, channels).
        hidden: units of each $h_j$.
        frequencies: of the features of each direction.
    """

    def __init__(
        self, *, concepts: int, image_shape: ImageShape, hidden: int = 96, frequencies: int = 5
    ) -> None:
        super().__init__()
        self.image_shape, self.frequencies = image_shape, frequencies
        height, width, channels = image_shape
        self.directions = nn.Parameter(_oblique(concepts))
        self.h = nn.ModuleList(
            nn.Sequential(
                nn.Linear(1 + 2 * frequencies, 128), nn.ReLU(), nn.Linear(128, hidden), nn.ReLU()
            )
            for _ in range(concepts)
        )
        self.out = nn.Linear(concepts * hidden, (channels + 1) * height * width)
        nn.init.normal_(self.out.weight, std=0.01)
        nn.init.zeros_(self.out.bias)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Colour (n, channels, height, width) and opacity (n, 1, height, width) of concepts (n, d)."""
        t = z @ self.directions.T
        seen = [
            h(fourier_features(t[:, j : j + 1], self.frequencies)) for j, h in enumerate(self.h)
        ]
        height, width, channels = self.image_shape
        painted = self.out(torch.cat(seen, dim=1)).view(len(z), channels + 1, height, width)
        return painted[:, :channels].sigmoid(), (painted[:, channels:] - 2).sigmoid()


def _oblique(d: int) -> Tensor:
    """(d, d) orthonormal directions, each of which sees all axes alike: those of a cosine transform."""
    j, i = torch.meshgrid(torch.arange(d), torch.arange(d), indexing="ij")
    waves = torch.cos(math.pi * j * (i + 0.5) / d)
    directions: Tensor = waves / waves.norm(dim=1, keepdim=True)
    return directions


class LayeredDecoder(nn.Module):
    """Painters over one another, on a background that all images share.

    Arguments:
        groups: which concepts each painter sees.
        image_shape: (height, width, channels).

    Attributes:
        regions: (groups, height, width) 1 where a painter may paint, 0 elsewhere; everywhere to begin
            with.

    >>> decoder = LayeredDecoder([(0,), (1, 2)], image_shape=(8, 8, 3))
    >>> decoder(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 8, 8])
    """

    regions: Tensor

    def __init__(self, groups: list[tuple[int, ...]], *, image_shape: ImageShape) -> None:
        super().__init__()
        height, width, channels = image_shape
        self.groups = groups
        self.register_buffer("regions", torch.ones(len(groups), height, width))
        self.background = nn.Parameter(torch.zeros(channels, height, width))
        self.painters = nn.ModuleList(
            Painter(concepts=len(group), image_shape=image_shape) for group in groups
        )

    def forward(self, z: Tensor) -> Tensor:
        """Images (n, channels, height, width) in (0, 1) of concepts (n, k)."""
        image = self.background.sigmoid().expand(len(z), -1, -1, -1)
        for group, painter, region in zip(self.groups, self.painters, self.regions, strict=True):
            colour, opacity = painter(z[:, group])
            image = image + opacity * region * (colour - image)
        return image
