"""Decoders in layers: each paints colour and opacity from its own few concepts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.encoders import ImageShape, Sum


def fourier_features(t: Tensor, frequencies: int) -> Tensor:
    r"""t itself, and $\sin(2^j \pi t / 4), \cos(2^j \pi t / 4)$: networks learn slow functions of these
    that are fast functions of t.

    >>> fourier_features(torch.zeros(5, 2), 3).shape
    torch.Size([5, 14])
    """
    angles = [t * (2**j * math.pi / 4) for j in range(frequencies)]
    return torch.cat([t, *(wave(a) for a in angles for wave in (torch.sin, torch.cos))], dim=-1)


class PixelwiseDecoder(nn.Module):
    r"""One layer of an image: $o_p = b_p + \sum_j W_{pj} h_j(w_j \cdot z)$ for each pixel p, its first
    channels being colour and the last opacity (before `ramp`).

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

    def forward(self, z: Tensor) -> Tensor:
        """Logits (n, channels + 1, height, width) of concepts (n, d)."""
        t = z @ self.directions.T
        seen = [
            h(fourier_features(t[:, j : j + 1], self.frequencies)) for j, h in enumerate(self.h)
        ]
        height, width, channels = self.image_shape
        painted: Tensor = self.out(torch.cat(seen, dim=1))
        return painted.view(len(z), channels + 1, height, width)


def _oblique(d: int) -> Tensor:
    """(d, d) orthonormal directions, each of which sees all axes alike: those of a cosine transform."""
    j, i = torch.meshgrid(torch.arange(d), torch.arange(d), indexing="ij")
    waves = torch.cos(math.pi * j * (i + 0.5) / d)
    directions: Tensor = waves / waves.norm(dim=1, keepdim=True)
    return directions


class EdgeDecoder(nn.Module):
    r"""One layer of an image in moving edges: $o_p = r_y + c_x + \sum_m W_m\,
    \sigma(g_m (n_m \cdot p - a_m \cdot z - b_m))$ for the pixel p = (x, y), its first channels being colour
    and the last opacity (before `ramp`).

    Each edge is a straight line that concepts shift. All pixels share the edges and their weights $W_m$,
    so that what was learnt of an edge holds wherever it goes: a shadow can be moved and stretched to
    where it never fell.

    Arguments:
        concepts: how many numbers the layer is painted from.
        image_shape: (height, width, channels).
        edges: how many.
    """

    # Adam moves every number at one pace; positions and weights of edges have further to go.
    PACE = 3.0
    points: Tensor

    def __init__(self, *, concepts: int, image_shape: ImageShape, edges: int = 48) -> None:
        super().__init__()
        self.image_shape = image_shape
        height, width, channels = image_shape
        self.register_buffer("points", _places(image_shape), persistent=False)

        def start(*shape: int, spread: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape) * spread / self.PACE)

        self.normals = start(2, edges, spread=0.7)
        self.shifts = start(concepts, edges, spread=0.3)
        self.offsets = start(edges, spread=0.5)
        self.log_gains = nn.Parameter(torch.full((edges,), math.log(12.0) / self.PACE))
        self.weights = start(edges, channels + 1, spread=0.3)
        self.rows = nn.Parameter(torch.zeros(channels + 1, height, 1))
        self.columns = nn.Parameter(torch.zeros(channels + 1, 1, width))

    def forward(self, z: Tensor) -> Tensor:
        """Logits (n, channels + 1, height, width) of concepts (n, d)."""
        pace = self.PACE
        distance = (self.points @ self.normals)[None] - (z @ self.shifts + self.offsets)[:, None]
        edges = torch.sigmoid(pace * distance * torch.exp(pace * self.log_gains))
        height, width, channels = self.image_shape
        painted = (pace * (edges @ self.weights)).view(len(z), height, width, channels + 1)
        return painted.permute(0, 3, 1, 2) + pace * (self.rows + self.columns)


class FieldDecoder(nn.Module):
    r"""One layer of an image as a field: $o(p) = f(\gamma(\tilde p_1), \gamma(\tilde p_2), \ldots, z)$ for
    the pixel p = (x, y), f a network, $\gamma$ slow waves, and $\tilde p_j = e^{s_j(z)} \circ (p - b_j(z))$
    the place as seen from frames that concepts move and stretch; its first channels are colour and the
    last opacity (before `ramp`).

    All pixels share the network. In a frame of its own a shape looks the same wherever it is and however
    wide and high, so that a jet can be bent to where none was, and no pixel depends on having been
    painted before.

    Arguments:
        concepts: how many numbers the layer is painted from.
        image_shape: (height, width, channels).
        frames: how many; a hole in a wall moves otherwise than the jet that leaves it.
        hidden: units of each of the network's layers.
        depth: how many layers.
        frequencies: of the waves.
    """

    places: Tensor

    def __init__(
        self,
        *,
        concepts: int,
        image_shape: ImageShape,
        frames: int = 3,
        hidden: int = 64,
        depth: int = 3,
        frequencies: int = 2,
    ) -> None:
        super().__init__()
        self.image_shape, self.frequencies = image_shape, frequencies
        self.register_buffer("places", 2 * _places(image_shape).repeat(1, frames), persistent=False)
        self.frames = nn.Linear(concepts, 4 * frames)
        nn.init.normal_(self.frames.weight, std=0.1)
        nn.init.zeros_(self.frames.bias)
        self.of_places = nn.Linear(2 * frames * (1 + 2 * frequencies), hidden)
        self.of_concepts = nn.Linear(concepts, hidden, bias=False)
        between = [m for _ in range(depth - 1) for m in (nn.SiLU(), nn.Linear(hidden, hidden))]
        self.out = nn.Sequential(*between, nn.SiLU(), nn.Linear(hidden, image_shape[2] + 1))

    def forward(self, z: Tensor) -> Tensor:
        """Logits (n, channels + 1, height, width) of concepts (n, d)."""
        height, width, channels = self.image_shape
        b, s = self.frames(z)[:, None].chunk(2, dim=2)
        seen = fourier_features(s.exp() * (self.places - b), self.frequencies)
        painted: Tensor = self.out(self.of_places(seen) + self.of_concepts(z)[:, None])
        return painted.view(len(z), height, width, channels + 1).permute(0, 3, 1, 2)


def _places(image_shape: ImageShape) -> Tensor:
    """(pixels, 2) x and y of each pixel, 0 in the middle, 1 at the ends of the longer side."""
    height, width, _ = image_shape
    y, x = torch.meshgrid(
        torch.arange(height) - height / 2, torch.arange(width) - width / 2, indexing="ij"
    )
    return torch.stack([x, y], dim=-1).flatten(0, 1) / (max(height, width) / 2)


Painters = tuple[type[PixelwiseDecoder | EdgeDecoder | FieldDecoder], ...]
SHARING: Painters = (EdgeDecoder, FieldDecoder)

Box = tuple[int, int, int, int]
"""Top, left, bottom and right of a part of an image, the latter two outside it."""


def ramp(t: Tensor) -> Tensor:
    r"""$\tfrac18 (\log(1 + e^{2t + 4}) - \log(1 + e^{2t - 4}))$: from 0 to 1, nearly straight in between.

    An edge that crosses a pixel covers it by a part that grows evenly, up to its corners; with a sigmoid,
    which bends everywhere, edges come out wrong between the places where they were seen.

    >>> [round(part, 2) for part in ramp(torch.tensor([-4.0, -1.0, 0.0, 1.0, 4.0])).tolist()]
    [0.0, 0.27, 0.5, 0.73, 1.0]
    """
    return (F.softplus(2 * t + 4) - F.softplus(2 * t - 4)) / 8


class LayeredDecoder(nn.Module):
    """Painters over one another, on a background that all images share.

    A concept on its own has a `PixelwiseDecoder`. Concepts that are painted together may be moved apart by an
    intervention, to where they never were: they have several kinds of painters, whose logits are added.

    Arguments:
        groups: which concepts each painter sees.
        image_shape: (height, width, channels).
        boxes: the part of the image that each paints; by default all of it.
        together: the kinds for concepts that are painted together; by default those whose pixels
            share all they learn.

    Attributes:
        regions: (groups, height, width) 1 where a painter may paint, 0 elsewhere; everywhere to begin
            with.

    >>> decoder = LayeredDecoder([(0,), (1, 2)], image_shape=(8, 8, 3))
    >>> decoder(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 8, 8])
    """

    regions: Tensor

    def __init__(
        self,
        groups: list[tuple[int, ...]],
        *,
        image_shape: ImageShape,
        boxes: list[Box] | None = None,
        together: Painters | None = None,
    ) -> None:
        super().__init__()
        height, width, channels = image_shape
        self.groups = groups
        self.boxes = boxes or [(0, 0, height, width)] * len(groups)
        self.register_buffer("regions", torch.ones(len(groups), height, width))
        self.background = nn.Parameter(torch.zeros(channels, height, width))
        self.painters = nn.ModuleList(
            Sum(
                kind(concepts=len(group), image_shape=(bottom - top, right - left, channels))
                for kind in ((PixelwiseDecoder,) if len(group) == 1 else together or SHARING)
            )
            for group, (top, left, bottom, right) in zip(groups, self.boxes, strict=True)
        )

    def forward(self, z: Tensor) -> Tensor:
        """Images (n, channels, height, width) in (0, 1) of concepts (n, k)."""
        image = self.background.sigmoid().expand(len(z), -1, -1, -1).clone()
        layers = zip(self.groups, self.boxes, self.painters, self.regions, strict=True)
        for group, (top, left, bottom, right), painter, region in layers:
            painted = painter(z[:, group])
            colour, opacity = painted[:, :-1].sigmoid(), ramp(painted[:, -1:] - 2)
            part = (..., slice(top, bottom), slice(left, right))
            below = image[part]
            above = below + opacity * region[part] * (colour - below)
            image = image.clone()
            image[part] = above
        return image
