"""An encoder that may be shown labels beside the image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.gaussian import DiagonalGaussian
from disentwine.nn.networks import ENCODERS, Network

FEATURES = 128


class LabelledEncoder(nn.Module):
    r"""$q(z|x, u)$ from the features of an image and those of its labels that are given.

    Arguments:
        image_shape: (height, width, channels).
        labels: k, how many there are.
        latent: numbers in z.
        network: of the image's features.

    >>> encoder = LabelledEncoder((16, 16, 1), labels=2, latent=6, network="compact")
    >>> encoder(torch.zeros(5, 1, 16, 16)).mean.shape
    torch.Size([5, 6])
    """

    def __init__(
        self, image_shape: ImageShape, *, labels: int, latent: int, network: Network
    ) -> None:
        super().__init__()
        self.labels = labels
        self.features = nn.Sequential(ENCODERS[network](image_shape, FEATURES), nn.ReLU())
        self.head = nn.Linear(FEATURES + 2 * labels, 2 * latent)

    def forward(
        self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None
    ) -> DiagonalGaussian:
        """Labels that are not given are not looked at.

        Arguments:
            x: images.
            u: (n, k) standardised labels.
            given: (n, k) 1 where a label is given, 0 elsewhere.
        """
        blank = x.new_zeros(len(x), self.labels)
        u, given = (blank, blank) if u is None or given is None else (u * given, given)
        return DiagonalGaussian.from_features(
            self.head(torch.cat([self.features(x), u, given], dim=1))
        )


def hide_rows(known: Tensor, share: float) -> Tensor:
    """The same (n, k) with a share of its rows, on average, set to 0: labels an encoder is not shown.

    >>> hide_rows(torch.ones(3, 2), 1.0).any()
    tensor(False)
    """
    return known * (torch.rand(len(known), 1, device=known.device) >= share)
