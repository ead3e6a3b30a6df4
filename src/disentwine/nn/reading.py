"""An encoder that reads the labels of an image, and codes what they do not say."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.labelled import FEATURES
from disentwine.nn.networks import ENCODERS, Network
from disentwine.nn.perceptron import perceptron


class Reading(NamedTuple):
    """What was found in images.

    Arguments:
        code: (n, latent) what the labels do not say.
        u: (n, k) labels: the given ones, and where none is given what was read.
        read: (n, k) what was read.
    """

    code: Tensor
    u: Tensor
    read: Tensor


class ReadingEncoder(nn.Module):
    r"""$f(x, u)$, with labels that are read from the image where they are not given.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, how many there are.
        latent: numbers in a code.
        network: of the image's features.

    >>> encoder = ReadingEncoder((16, 16, 1), labels=2, latent=6, network="compact")
    >>> encoder(torch.zeros(5, 1, 16, 16)).code.shape
    torch.Size([5, 6])
    """

    def __init__(
        self, image_shape: ImageShape, *, labels: int, latent: int, network: Network
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(ENCODERS[network](image_shape, FEATURES), nn.ReLU())
        self.labels = nn.Linear(FEATURES, labels)
        self.code = perceptron([FEATURES + labels, FEATURES, latent])

    def forward(self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None) -> Reading:
        """Labels that are not given are not looked at.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 elsewhere.
        """
        features = self.features(x)
        read = self.labels(features)
        u = read if u is None or given is None else torch.where(given > 0, u, read)
        return Reading(self.code(torch.cat([features, u], dim=1)), u, read)
