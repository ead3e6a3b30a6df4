"""Diagonal Gaussian posteriors and decoders with pixel likelihoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from disentwine.losses.elbo import bernoulli_log_likelihood, gaussian_log_likelihood
from disentwine.nn.encoders import DECODERS, ImageShape, Network


@dataclass(frozen=True)
class DiagonalGaussian:
    r"""Diagonal Gaussian $\mathcal{N}(\mu, \mathrm{diag}(\sigma^2))$ for each sample.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).
    """

    mean: Tensor
    log_variance: Tensor

    @classmethod
    def from_features(cls, features: Tensor) -> DiagonalGaussian:
        """Split the output (n, 2d) of a network into mean and log-variance.

        Half precision is converted to single: sums for batch moments and densities would be inaccurate.

        >>> DiagonalGaussian.from_features(torch.zeros(5, 20)).mean.shape
        torch.Size([5, 10])
        """
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        mean, log_variance = features.chunk(2, dim=1)
        return cls(mean, log_variance)

    def sample(self) -> Tensor:
        r"""Reparameterised sample $z = \mu + \sigma \odot \epsilon$, (n, d)."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean)


Likelihood = Literal["bernoulli", "gaussian"]


def log_noise_scale(likelihood: Likelihood) -> nn.Parameter | None:
    """The noise parameter: one log-scale for all Gaussian pixels, none for Bernoulli pixels."""
    return nn.Parameter(torch.zeros(())) if likelihood == "gaussian" else None


def pixel_log_likelihood(x: Tensor, output: Tensor, log_scale: Tensor | None) -> Tensor:
    r"""$\log p(x|z)$, (n,) nats, from Gaussian means or, without a scale, from Bernoulli logits.

    >>> pixel_log_likelihood(torch.ones(1, 3), torch.zeros(1, 3), None)  # 3 log(1/2)
    tensor([-2.0794])
    """
    if log_scale is None:
        return bernoulli_log_likelihood(x, output)
    return gaussian_log_likelihood(x, output, scale=log_scale.exp())


def mean_pixels(output: Tensor, log_scale: Tensor | None) -> Tensor:
    """Mean image in [0, 1] for the decoder output that `pixel_log_likelihood` takes."""
    return output.sigmoid() if log_scale is None else output.clamp(0, 1)


class PixelDecoder(nn.Module):
    r"""Decoder $p(x|z)$ with Bernoulli pixels, or Gaussian pixels with one learnt noise scale.

    Arguments:
        latent: number of latent dimensions.
        image_shape: (height, width, channels).
        network: see `disentwine.nn.encoders`.
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
        """Mean images of latents (n, latent), in [0, 1]."""
        return mean_pixels(self.network(z), self.log_scale)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        return pixel_log_likelihood(x, self.network(z), self.log_scale)
