"""The decoder of models with concepts: a network, and a distribution of pixels around its image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from disentwine.models.latent import Likelihood
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import DECODERS, Network
from disentwine.objectives.elbo import bernoulli_log_likelihood, gaussian_log_likelihood


class PixelDecoder(nn.Module):
    r"""$p(x|z)$ with Bernoulli pixels, or Gaussian ones whose one noise scale is learnt.

    Arguments:
        latent: numbers in z.
        image_shape: (height, width, channels).
        network: see `disentwine.nn.networks`.
        likelihood: the distribution over pixels.

    >>> decoder = PixelDecoder(4, (16, 16, 3), network="compact", likelihood="bernoulli")
    >>> decoder(torch.zeros(5, 4)).shape
    torch.Size([5, 3, 16, 16])
    """

    def __init__(
        self, latent: int, image_shape: ImageShape, *, network: Network, likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.network = DECODERS[network](latent, image_shape)
        if likelihood == "gaussian":
            self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, z: Tensor) -> Tensor:
        """The mean image of codes (n, latent), in [0, 1]."""
        output: Tensor = self.network(z)
        return output.clamp(0, 1) if self.likelihood == "gaussian" else output.sigmoid()

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        output = self.network(z)
        if self.likelihood == "gaussian":
            return gaussian_log_likelihood(x, output, scale=self.log_scale.exp())
        return bernoulli_log_likelihood(x, output)
