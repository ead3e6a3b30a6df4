"""Wasserstein autoencoders, WAE-GAN and WAE-MMD."""

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
from disentwine.nn.images import accepts_images, as_latents, check_count


class Autoencoder(Model):
    r"""Deterministic autoencoder $z = f(x)$, $\hat x = g(z)$ with prior $p(z) = \mathcal{N}(0, I)$.

    Subclasses add the `loss` of their paper. The decoder has no final sigmoid, which with squared errors
    and mostly black images would saturate at a black image.

    Arguments:
        image_shape: (height, width, channels).
        latent: number of latent dimensions.
        network: "compact", "normed", "standard" or "mlp".
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
        """Samples of the prior, (n, latent)."""
        weight = next(self.parameters())
        return torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype)

    @torch.no_grad()
    def decode(self, latents: Any) -> Tensor:
        """Images decoded from latents, (n, channels, height, width) in [0, 1].

        Arguments:
            latents: (n, latent), an array or a tensor.
        """
        z = as_latents(latents, width=self.latent, like=next(self.parameters()))
        images: Tensor = self.decoder(z)
        return images.clamp(0, 1)

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Latents of each image, (n, latent)."""
        z: Tensor = self.encoder(x)
        return z

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Reconstruction of each image, in the format of the input."""
        return self.decode(self.encoder(x))

    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        return self.decode(self.sample_prior(n))


Divergence = Literal["mmd", "gan"]

HIDDEN_LAYERS = 4

BETAS = (0.5, 0.999)


def latent_discriminator(latent: int, units: int) -> nn.Sequential:
    """Discriminator of latents with four hidden layers; its logit is high for samples of the prior.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin et al., 2018, appendix.

    >>> latent_discriminator(3, 16)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """
    return perceptron([latent, *[units] * HIDDEN_LAYERS, 1])


def discriminator_training(learning_rate: float) -> DiscriminatorTraining:
    """Adam settings of the discriminator."""
    return DiscriminatorTraining(learning_rate, betas=BETAS)


def divergence_from_prior(z: Tensor, discriminator: nn.Module | None) -> Tensor:
    """MMD () between latents and samples of the prior or, with a discriminator, the adversarial loss
    (n,) of each row of latents.
    """
    if discriminator is None:
        return mmd(z, torch.randn_like(z))
    return generator_loss(discriminator(z)[:, 0])


def prior_discriminator_loss(z: Tensor, discriminator: nn.Module) -> Tensor:
    """Cross-entropy (n,) of a discriminator between samples of the prior and latents."""
    prior = torch.randn_like(z)
    return discriminator_loss(discriminator(prior)[:, 0], discriminator(z)[:, 0])


class WAEGAN(Autoencoder):
    r"""WAE-GAN: minimise $\mathbb{E}\,\|x - g(f(x))\|^2 - \lambda \log D(f(x))$ with a discriminator D
    between samples of the prior and latents (eq. 4 with the GAN-based penalty, algorithm 1).

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_gan: $\lambda$, weight of the penalty relative to squared errors summed over pixels.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_units: width of the four hidden layers of the discriminator.
        discriminator_learning_rate: learning rate of the discriminator.

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
        self.discriminator = latent_discriminator(latent, discriminator_units)
        self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def loss(self, batch: Batch) -> Losses:
        """Squared error, and adversarial loss of the latents."""
        z = self.encoder(batch.x)
        return Losses(
            {
                "reconstruction": self.squared_error(batch.x, z),
                "prior": divergence_from_prior(z, self.discriminator),
            },
            {"prior": self.lambda_gan},
        )

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Cross-entropy between samples of the prior and latents."""
        z = self.encoder(batch.x)
        return Losses({"cross_entropy": prior_discriminator_loss(z, self.discriminator)})


class WAEMMD(Autoencoder):
    r"""WAE-MMD: minimise $\mathbb{E}\,\|x - g(f(x))\|^2 + \lambda\,\mathrm{MMD}(f(x), z)$ with $z$ from
    $\mathcal{N}(0, I)$ (eq. 4, algorithm 2) and a sum of inverse multiquadratic kernels.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_mmd: $\lambda$, weight of the MMD relative to squared errors summed over pixels.
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
        """Squared error, and MMD between latents and prior."""
        z = self.encoder(batch.x)
        return Losses(
            {
                "reconstruction": self.squared_error(batch.x, z),
                "mmd": mmd(z, self.sample_prior(len(z))),
            },
            {"mmd": self.lambda_mmd},
        )
