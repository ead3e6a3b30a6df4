"""What Wasserstein autoencoders share: a code without noise, a decoder, and the model's face."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from disentwine.contracts.model import Model
from disentwine.nn.codes import as_codes, check_count
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import DECODERS, ENCODERS, Network
from disentwine.nn.pictures import accepts_pictures


class Autoencoder(Model):
    r"""$z = f(x)$, $\hat x = g(z)$, and $p(z) = \mathcal{N}(0, I)$, which the codes are to follow.

    A subclass adds its paper's `loss`. The decoder ends without a sigmoid: under squared error one
    would saturate at a blank image where most pixels are black, and learn no more.

    Arguments:
        image_shape: (height, width, channels).
        latent: number of latent dimensions.
        network: see `disentwine.nn.networks`.
    """

    def __init__(self, *, image_shape: ImageShape, latent: int, network: Network) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.latent = latent
        self.network = network
        self.encoder = ENCODERS[network](image_shape, latent)
        self.decoder = DECODERS[network](latent, image_shape)

    def squared_error(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\|x - g(z)\|^2$ of each image, (n,)."""
        reconstruction: Tensor = self.decoder(z)
        return (x - reconstruction).square().flatten(1).sum(1)

    def sample_prior(self, n: int) -> Tensor:
        """Codes from the prior, (n, latent)."""
        weight = next(self.parameters())
        return torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype)

    @torch.no_grad()
    def decode(self, codes: Any) -> Tensor:
        """The image of each code, (n, channels, height, width) in [0, 1].

        Arguments:
            codes: (n, latent), an array or a tensor.
        """
        z = as_codes(codes, width=self.latent, like=next(self.parameters()))
        images: Tensor = self.decoder(z)
        return images.clamp(0, 1)

    @accepts_pictures
    def represent(self, x: Tensor) -> Tensor:
        """The code of each image, (n, latent)."""
        codes: Tensor = self.encoder(x)
        return codes

    @accepts_pictures
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its code, in the form it was given."""
        return self.decode(self.encoder(x))

    def sample(self, n: int) -> Tensor:
        """Images decoded from the prior, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        return self.decode(self.sample_prior(n))
