"""Layered decoder: colour and opacity of each image layer from its own concepts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.encoders import ImageShape, Sum


def fourier_features(t: Tensor, frequencies: int) -> Tensor:
    r"""Fourier features t, $\sin(2^j \pi t / 4)$ and $\cos(2^j \pi t / 4)$, with which networks can fit
    functions that vary fast with t.

    >>> fourier_features(torch.zeros(5, 2), 3).shape
    torch.Size([5, 14])
    """
    angles = [t * (2**j * math.pi / 4) for j in range(frequencies)]
    return torch.cat([t, *(wave(a) for a in angles for wave in (torch.sin, torch.cos))], dim=-1)


class PixelwiseDecoder(nn.Module):
    r"""Image layer $o_p = b_p + \sum_j W_{pj} h_j(w_j \cdot z)$ for each pixel p; the first channels are
    colour and the last is opacity (before `coverage_ramp`).

    Each $h_j$ is a function of one learnt linear combination of the concepts. The sum extrapolates to new
    combinations: both ends of a bar can move independently although they moved together in training.

    Arguments:
        concepts: number of concepts, and of directions $w_j$.
        image_shape: (height, width, channels).
        hidden: units of each $h_j$.
        frequencies: Fourier frequencies of each direction.
    """

    def __init__(
        self, *, concepts: int, image_shape: ImageShape, hidden: int = 96, frequencies: int = 5
    ) -> None:
        super().__init__()
        self.image_shape, self.frequencies = image_shape, frequencies
        height, width, channels = image_shape
        self.directions = nn.Parameter(_cosine_directions(concepts))
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
        hidden = [
            h(fourier_features(t[:, j : j + 1], self.frequencies)) for j, h in enumerate(self.h)
        ]
        height, width, channels = self.image_shape
        logits: Tensor = self.out(torch.cat(hidden, dim=1))
        return logits.view(len(z), channels + 1, height, width)


def _cosine_directions(d: int) -> Tensor:
    """(d, d) orthonormal directions of the discrete cosine transform, not aligned with the axes."""
    j, i = torch.meshgrid(torch.arange(d), torch.arange(d), indexing="ij")
    waves = torch.cos(math.pi * j * (i + 0.5) / d)
    directions: Tensor = waves / waves.norm(dim=1, keepdim=True)
    return directions


class EdgeDecoder(nn.Module):
    r"""Image layer of moving edges: $o_p = r_y + c_x + \sum_m W_m\,
    \sigma(g_m (n_m \cdot p - a_m \cdot z - b_m))$ for the pixel p = (x, y); the first channels are colour
    and the last is opacity (before `coverage_ramp`).

    Each edge is a straight line shifted by the concepts. All pixels share the edges and their weights
    $W_m$, so shapes extrapolate to positions and sizes that occur in no training image.

    Arguments:
        concepts: number of concepts.
        image_shape: (height, width, channels).
        edges: number of edges.
    """

    # Adam updates all parameters at the same rate, but edges have larger ranges; parameters are therefore
    # stored divided by this factor.
    RATE_SCALE = 3.0
    points: Tensor

    def __init__(self, *, concepts: int, image_shape: ImageShape, edges: int = 48) -> None:
        super().__init__()
        self.image_shape = image_shape
        height, width, channels = image_shape
        self.register_buffer("points", pixel_coordinates(image_shape), persistent=False)

        def parameter(*shape: int, spread: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape) * spread / self.RATE_SCALE)

        self.normals = parameter(2, edges, spread=0.7)
        self.shifts = parameter(concepts, edges, spread=0.3)
        self.offsets = parameter(edges, spread=0.5)
        self.log_gains = nn.Parameter(torch.full((edges,), math.log(12.0) / self.RATE_SCALE))
        self.weights = parameter(edges, channels + 1, spread=0.3)
        self.rows = nn.Parameter(torch.zeros(channels + 1, height, 1))
        self.columns = nn.Parameter(torch.zeros(channels + 1, 1, width))

    def forward(self, z: Tensor) -> Tensor:
        """Logits (n, channels + 1, height, width) of concepts (n, d)."""
        rate_scale = self.RATE_SCALE
        distance = (self.points @ self.normals)[None] - (z @ self.shifts + self.offsets)[:, None]
        edges = torch.sigmoid(rate_scale * distance * torch.exp(rate_scale * self.log_gains))
        height, width, channels = self.image_shape
        logits = (rate_scale * (edges @ self.weights)).view(len(z), height, width, channels + 1)
        return logits.permute(0, 3, 1, 2) + rate_scale * (self.rows + self.columns)


class FieldDecoder(nn.Module):
    r"""Image layer as a neural field: $o(p) = f(\gamma(\tilde p_1), \gamma(\tilde p_2), \ldots, z)$ for
    the pixel p = (x, y), with a network f, Fourier features $\gamma$, and coordinates
    $\tilde p_j = e^{s_j(z)} \circ (p - b_j(z))$ in frames that concepts shift and scale; the first
    channels are colour and the last is opacity (before `coverage_ramp`).

    All pixels share the network, and in its frame a shape is independent of position and size, so shapes
    extrapolate to positions that occur in no training image.

    Arguments:
        concepts: number of concepts.
        image_shape: (height, width, channels).
        frames: number of frames, for parts that move independently.
        hidden: units of each layer of the network.
        depth: number of layers.
        frequencies: of the Fourier features.
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
        self.register_buffer(
            "places", 2 * pixel_coordinates(image_shape).repeat(1, frames), persistent=False
        )
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
        features = fourier_features(s.exp() * (self.places - b), self.frequencies)
        logits: Tensor = self.out(self.of_places(features) + self.of_concepts(z)[:, None])
        return logits.view(len(z), height, width, channels + 1).permute(0, 3, 1, 2)


def pixel_coordinates(image_shape: ImageShape) -> Tensor:
    """(pixels, 2) x and y of each pixel: 0 in the centre, ±1 at the ends of the longer side."""
    height, width, _ = image_shape
    y, x = torch.meshgrid(
        torch.arange(height) - height / 2, torch.arange(width) - width / 2, indexing="ij"
    )
    return torch.stack([x, y], dim=-1).flatten(0, 1) / (max(height, width) / 2)


ComponentKinds = tuple[type[PixelwiseDecoder | EdgeDecoder | FieldDecoder], ...]
SHARED_PIXEL: ComponentKinds = (EdgeDecoder, FieldDecoder)
"""Component decoders whose parameters all pixels share."""

Box = tuple[int, int, int, int]
"""Top, left, bottom and right of a part of an image; bottom and right are exclusive."""


def coverage_ramp(t: Tensor) -> Tensor:
    r"""$\tfrac18 (\log(1 + e^{2t + 4}) - \log(1 + e^{2t - 4}))$: a soft step from 0 to 1, nearly linear in
    between.

    The fraction of a pixel that a moving edge covers grows linearly. A sigmoid is curved everywhere and
    interpolates badly between the positions of edges in training.

    >>> [round(part, 2) for part in coverage_ramp(torch.tensor([-4.0, -1.0, 0.0, 1.0, 4.0])).tolist()]
    [0.0, 0.27, 0.5, 0.73, 1.0]
    """
    return (F.softplus(2 * t + 4) - F.softplus(2 * t - 4)) / 8


class LayeredDecoder(nn.Module):
    """Component decoders, alpha-composited in order over a background that all images share.

    A group of one concept has a `PixelwiseDecoder`. A group of several concepts has component decoders of
    several kinds, whose logits are added, as interventions can set these concepts to combinations that do
    not occur in training.

    Arguments:
        concept_groups: the concepts of each image layer.
        image_shape: (height, width, channels).
        group_boxes: the part of the image that each layer covers; by default all of it.
        joint: component decoders of groups of several concepts.

    Attributes:
        group_masks: (groups, height, width) 1 where a layer is visible, 0 elsewhere; initially 1.

    >>> decoder = LayeredDecoder([(0,), (1, 2)], image_shape=(8, 8, 3))
    >>> decoder(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 8, 8])
    """

    group_masks: Tensor

    def __init__(
        self,
        concept_groups: Sequence[tuple[int, ...]],
        *,
        image_shape: ImageShape,
        group_boxes: Sequence[Box] | None = None,
        joint: ComponentKinds = SHARED_PIXEL,
    ) -> None:
        super().__init__()
        height, width, channels = image_shape
        self.concept_groups = concept_groups
        self.group_boxes = group_boxes or [(0, 0, height, width)] * len(concept_groups)
        self.register_buffer("group_masks", torch.ones(len(concept_groups), height, width))
        self.background = nn.Parameter(torch.zeros(channels, height, width))
        self.components = nn.ModuleList(
            Sum(
                kind(concepts=len(group), image_shape=(bottom - top, right - left, channels))
                for kind in ((PixelwiseDecoder,) if len(group) == 1 else joint)
            )
            for group, (top, left, bottom, right) in zip(
                concept_groups, self.group_boxes, strict=True
            )
        )

    def forward(self, z: Tensor) -> Tensor:
        """Images (n, channels, height, width) in (0, 1) of concepts (n, k)."""
        image = self.background.sigmoid().expand(len(z), -1, -1, -1).clone()
        layers = zip(
            self.concept_groups, self.group_boxes, self.components, self.group_masks, strict=True
        )
        for group, (top, left, bottom, right), component, mask in layers:
            logits = component(z[:, group])
            colour, opacity = logits[:, :-1].sigmoid(), coverage_ramp(logits[:, -1:] - 2)
            part = (..., slice(top, bottom), slice(left, right))
            below = image[part]
            above = below + opacity * mask[part] * (colour - below)
            image = image.clone()
            image[part] = above
        return image
