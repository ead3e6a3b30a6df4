"""Distributions of pixels around what a network paints, and the decoder of models with concepts."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import DECODERS, Network
from disentwine.objectives.elbo import bernoulli_log_likelihood, gaussian_log_likelihood

Likelihood = Literal["bernoulli", "gaussian"]


def log_noise_scale(likelihood: Likelihood) -> nn.Parameter | None:
    """What is learnt of the noise: one scale for all Gaussian pixels, nothing for Bernoulli ones."""
    return nn.Parameter(torch.zeros(())) if likelihood == "gaussian" else None


def pixel_log_likelihood(x: Tensor, output: Tensor, log_scale: Tensor | None) -> Tensor:
    r"""$\log p(x|z)$, (n,) nats, of means with Gaussian noise or, without a scale, of Bernoulli logits.

    >>> pixel_log_likelihood(torch.ones(1, 3), torch.zeros(1, 3), None)  # 3 log(1/2)
    tensor([-2.0794])
    """
    if log_scale is None:
        return bernoulli_log_likelihood(x, output)
    return gaussian_log_likelihood(x, output, scale=log_scale.exp())


def mean_pixels(output: Tensor, log_scale: Tensor | None) -> Tensor:
    """The mean image in [0, 1] of what `pixel_log_likelihood` is given."""
    return output.sigmoid() if log_scale is None else output.clamp(0, 1)


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
        self.log_scale = log_noise_scale(likelihood)

    def forward(self, z: Tensor) -> Tensor:
        """The mean image of codes (n, latent), in [0, 1]."""
        return mean_pixels(self.network(z), self.log_scale)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        return pixel_log_likelihood(x, self.network(z), self.log_scale)
