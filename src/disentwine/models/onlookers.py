"""Those who look at a CausalGAN's images: discriminator, labeler, anti-labeler and encoder."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import ENCODERS, Network

FEATURES = 128
LEAST_SCALE = 0.1
"""Of the labelers, in standard deviations of a label: surer ones would outweigh the discriminator."""


class CausalGANLatents(NamedTuple):
    """Standardised concepts (n, k), and the noise (n, d) of all else."""

    concepts: Tensor
    noise: Tensor


class Views(NamedTuple):
    """What the judges see in images: (n,) true or painted, and labels (n, k), twice."""

    logit: Tensor
    labels: Tensor
    anti_labels: Tensor


class Onlookers(nn.Module):
    """Discriminator, labeler and anti-labeler on features that they share; and an encoder."""

    def __init__(
        self, image_shape: ImageShape, *, concepts: int, noise: int, network: Network
    ) -> None:
        super().__init__()
        self.sizes = [1, concepts, concepts]
        self.features = ENCODERS[network](image_shape, FEATURES)
        self.heads = nn.Linear(FEATURES, sum(self.sizes))
        self.label_scale = nn.Parameter(torch.zeros(concepts))
        self.anti_label_scale = nn.Parameter(torch.zeros(concepts))
        self.encoder = ENCODERS[network](image_shape, concepts + noise)

    def forward(self, x: Tensor) -> Views:
        logit, *labels = self.heads(F.leaky_relu(self.features(x), 0.2)).split(self.sizes, dim=1)
        return Views(logit[:, 0], *labels)

    def encode(self, x: Tensor) -> CausalGANLatents:
        k = self.sizes[1]
        code: Tensor = self.encoder(x)
        return CausalGANLatents(code[:, :k], code[:, k:])

    def label_cost(self, labels: Tensor, seen: Tensor) -> Tensor:
        """-log L of labels (n, k) given what the labeler sees, (n, k) nats."""
        return _cost(labels, seen, self.label_scale)

    def anti_label_cost(self, labels: Tensor, seen: Tensor) -> Tensor:
        """-log A of labels (n, k) given what the anti-labeler sees, (n, k) nats."""
        return _cost(labels, seen, self.anti_label_scale)


def _cost(labels: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    scale = F.softplus(scale) + LEAST_SCALE
    return 0.5 * ((labels - mean) / scale).square() + scale.log()
