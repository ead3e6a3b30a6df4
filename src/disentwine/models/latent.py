"""What the VAE and its descendants share: a Gaussian posterior, a decoder, and the model's face."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from disentwine.contracts.model import Model
from disentwine.models.pixels import (
    Likelihood,
    log_noise_scale,
    mean_pixels,
    pixel_log_likelihood,
)
from disentwine.nn.codes import as_codes, check_count
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.gaussian import DiagonalGaussian
from disentwine.nn.networks import DECODERS, ENCODERS, Network
from disentwine.nn.pictures import accepts_pictures
from disentwine.nn.reviving import revive_units


class LatentModel(Model):
    r"""$q(z|x) = \mathcal{N}(\mu(x), \sigma^2(x))$, $p(z) = \mathcal{N}(0, I)$ and $p(x|z)$.

    A subclass adds its paper's `loss`. The Gaussian decoder learns one noise scale for all pixels.

    Arguments:
        image_shape: (height, width, channels).
        latent: number of latent dimensions.
        network: see `disentwine.nn.networks`.
        likelihood: the decoder's distribution over pixels.
    """

    def __init__(
        self, *, image_shape: ImageShape, latent: int, network: Network, likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.latent = latent
        self.network = network
        self.likelihood = likelihood
        self.encoder = ENCODERS[network](image_shape, 2 * latent)
        self.decoder = DECODERS[network](latent, image_shape)
        self.log_scale = log_noise_scale(likelihood)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        """$q(z|x)$ of images (n, channels, height, width)."""
        return DiagonalGaussian.from_features(self.encoder(x))

    def reconstruction_log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        return pixel_log_likelihood(x, self.decoder(z), self.log_scale)

    @torch.no_grad()
    def revive(self, x: Tensor, *, most: int | None = None) -> tuple[int, ...]:
        """Make units that say nothing of images (n, channels, height, width) anew, at most so many;
        returns which."""
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        revived = revive_units(encoder[-1], decoder[0], encoder[:-1](x), most=most)
        return tuple(revived.tolist())

    @torch.no_grad()
    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        r"""$\log p(x|z) + \log p(z) - \log q(z|x)$ for `samples` draws of z from q, (samples, n)."""
        q = self.posterior(x)
        e = torch.randn(samples, *q.mean.shape, device=x.device, dtype=q.mean.dtype)
        z = q.mean + torch.exp(0.5 * q.log_variance) * e
        repeated = x.expand(samples, *x.shape).flatten(0, 1)
        log_likelihood = self.reconstruction_log_likelihood(repeated, z.flatten(0, 1))
        # The normalising constants of p(z) and q(z|x) cancel.
        log_ratio = 0.5 * (e.square() + q.log_variance - z.square()).sum(-1)
        return log_likelihood.view(samples, len(x)) + log_ratio

    @torch.no_grad()
    def decode(self, codes: Any) -> Tensor:
        """The mean image of each code, (n, channels, height, width) in [0, 1].

        Arguments:
            codes: (n, latent), an array or a tensor.
        """
        z = as_codes(codes, width=self.latent, like=next(self.parameters()))
        return mean_pixels(self.decoder(z), self.log_scale)

    @accepts_pictures
    def represent(self, x: Tensor) -> Tensor:
        """The posterior mean of each image, (n, latent)."""
        return self.posterior(x).mean

    @accepts_pictures
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its posterior mean, in the form it was given."""
        return self.decode(self.posterior(x).mean)

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from the prior, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        weight: Any = next(self.parameters())
        return self.decode(torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype))
