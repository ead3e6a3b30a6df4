"""Deterministic autoencoder base; code discriminator, divergence from prior; WAE-GAN; WAE-MMD."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.types import Count, NonNegative, Positive
from disentwine.losses.adversarial import discriminator_loss, generator_loss
from disentwine.losses.kernels import mmd
from disentwine.nn.encoders import DECODERS, ENCODERS, ImageShape, Network, perceptron
from disentwine.nn.images import accepts_images, as_codes, check_count


class Autoencoder(Model):
    r"""$z = f(x)$, $\hat x = g(z)$, and $p(z) = \mathcal{N}(0, I)$, which the codes are to follow.

    A subclass adds its paper's `loss`. The decoder ends without a sigmoid: under squared error one
    would saturate at a blank image where most pixels are black, and learn no more.

    Arguments:
        image_shape: (height, width, channels).
        latent: number of latent dimensions.
        network: see `disentwine.nn.encoders`.
    """

    def __init__(self, image_shape: ImageShape, *, latent: int, network: Network) -> None:
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

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """The code of each image, (n, latent)."""
        codes: Tensor = self.encoder(x)
        return codes

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its code, in the form it was given."""
        return self.decode(self.encoder(x))

    def sample(self, n: int) -> Tensor:
        """Images decoded from the prior, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        return self.decode(self.sample_prior(n))


Divergence = Literal["mmd", "gan"]

HIDDEN_LAYERS = 4

BETAS = (0.5, 0.999)


def code_discriminator(latent: int, units: int) -> nn.Sequential:
    """Four hidden layers of so many units, from codes to the logit of being drawn from the prior.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin et al., 2018, appendix.

    >>> code_discriminator(3, 16)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """
    return perceptron([latent, *[units] * HIDDEN_LAYERS, 1])


def discriminator_training(learning_rate: float) -> DiscriminatorTraining:
    """The discriminator's Adam."""
    return DiscriminatorTraining(learning_rate, betas=BETAS)


def divergence_from_prior(codes: Tensor, discriminator: nn.Module | None) -> Tensor:
    """The maximum mean discrepancy from draws of the prior, (); or, with a discriminator, how far each
    code is from passing for one, (n,)."""
    if discriminator is None:
        return mmd(codes, torch.randn_like(codes))
    return generator_loss(discriminator(codes)[:, 0])


def telling_apart(codes: Tensor, discriminator: nn.Module) -> Tensor:
    """The cross-entropy (n,) of telling draws of the prior from codes."""
    drawn = torch.randn_like(codes)
    return discriminator_loss(discriminator(drawn)[:, 0], discriminator(codes)[:, 0])


class WAEGAN(Autoencoder):
    r"""Minimise $\mathbb{E}\,\|x - g(f(x))\|^2 - \lambda \log D(f(x))$ against a discriminator D that tells
    draws of the prior from codes (eq. 4 with the GAN-based penalty, algorithm 1).

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_gan: $\lambda$, the penalty's weight beside squared errors summed over pixels.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_units: of each of the discriminator's four hidden layers.
        discriminator_learning_rate: of the discriminator's Adam.

    >>> import torch
    >>> model = WAEGAN(image_shape=(16, 16, 1), latent=4, discriminator_units=32)
    >>> batch = Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))
    >>> model.loss(batch).weights, list(model.discriminator_loss(batch).terms)
    ({'prior': 10.0}, ['cross_entropy'])
    """

    not_in_weights = ("lambda_gan", "discriminator_learning_rate")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        lambda_gan: NonNegative = 10.0,
        network: Network = "compact",
        discriminator_units: Count = 512,
        discriminator_learning_rate: Positive = 5e-4,
    ) -> None:
        super().__init__(image_shape=image_shape, latent=latent, network=network)
        self.lambda_gan = lambda_gan
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator = code_discriminator(latent, discriminator_units)
        self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def loss(self, batch: Batch) -> Losses:
        """Squared error, and how far the codes are from passing for draws of the prior."""
        z = self.encoder(batch.x)
        return Losses(
            {
                "reconstruction": self.squared_error(batch.x, z),
                "prior": divergence_from_prior(z, self.discriminator),
            },
            {"prior": self.lambda_gan},
        )

    def discriminator_loss(self, batch: Batch) -> Losses:
        """The cross-entropy of telling draws of the prior from codes."""
        z = self.encoder(batch.x)
        return Losses({"cross_entropy": telling_apart(z, self.discriminator)})


class WAEMMD(Autoencoder):
    r"""Minimise $\mathbb{E}\,\|x - g(f(x))\|^2 + \lambda\,\mathrm{MMD}(f(x), z)$ with $z$ from
    $\mathcal{N}(0, I)$ (eq. 4, algorithm 2) and a sum of inverse multiquadratic kernels.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_mmd: $\lambda$, the discrepancy's weight beside squared errors summed over pixels.
        network: "compact", "normed", "standard" or "mlp".

    >>> import torch
    >>> model = WAEMMD(image_shape=(16, 16, 1), latent=4)
    >>> model.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).weights
    {'mmd': 10.0}
    """

    not_in_weights = ("lambda_mmd",)

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        lambda_mmd: NonNegative = 10.0,
        network: Network = "compact",
    ) -> None:
        super().__init__(image_shape=image_shape, latent=latent, network=network)
        self.lambda_mmd = lambda_mmd

    for_data = ForData(__init__)

    def loss(self, batch: Batch) -> Losses:
        """Squared error and weighted discrepancy from the prior."""
        z = self.encoder(batch.x)
        return Losses(
            {
                "reconstruction": self.squared_error(batch.x, z),
                "mmd": mmd(z, self.sample_prior(len(z))),
            },
            {"mmd": self.lambda_mmd},
        )
