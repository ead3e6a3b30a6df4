"""The Wasserstein autoencoder with a discriminator of codes."""

from __future__ import annotations

from disentwine.contracts.model import Batch, Losses
from disentwine.contracts.ranges import Count, NonNegative, Positive
from disentwine.models.autoencoder import Autoencoder
from disentwine.models.code_opponent import (
    code_discriminator,
    discriminator_training,
    divergence_from_prior,
    telling_apart,
)
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import Network


class WAEGAN(Autoencoder):
    r"""Minimise $\mathbb{E}\,\|x - g(f(x))\|^2 - \lambda \log D(f(x))$ against a discriminator D that tells
    draws of the prior from codes (eq. 4 with the GAN-based penalty, algorithm 1).

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin, O. Bousquet, S. Gelly and B. Schoelkopf, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_gan: $\lambda$, the penalty's weight beside squared errors summed over pixels.
        network: "compact", "normed", "standard" or "mlp".
        opponent_units: of each of the discriminator's four hidden layers.
        opponent_learning_rate: of the discriminator's Adam.

    >>> import torch
    >>> model = WAEGAN(image_shape=(16, 16, 1), latent=4, opponent_units=32)
    >>> batch = Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))
    >>> model.loss(batch).weights, list(model.opponent_loss(batch).terms)
    ({'prior': 10.0}, ['cross_entropy'])
    """

    def __init__(
        self,
        *,
        image_shape: ImageShape,
        latent: Count = 10,
        lambda_gan: NonNegative = 10.0,
        network: Network = "compact",
        opponent_units: Count = 512,
        opponent_learning_rate: Positive = 5e-4,
    ) -> None:
        super().__init__(image_shape=image_shape, latent=latent, network=network)
        self.lambda_gan = lambda_gan
        self.opponent_units = opponent_units
        self.opponent_learning_rate = opponent_learning_rate
        self.opponent = code_discriminator(latent, opponent_units)
        self.opponent_training = discriminator_training(opponent_learning_rate)

    def loss(self, batch: Batch) -> Losses:
        """Squared error, and how far the codes are from passing for draws of the prior."""
        z = self.encoder(batch.x)
        return Losses(
            {
                "reconstruction": self.squared_error(batch.x, z),
                "prior": divergence_from_prior(z, self.opponent),
            },
            {"prior": self.lambda_gan},
        )

    def opponent_loss(self, batch: Batch) -> Losses:
        """The cross-entropy of telling draws of the prior from codes."""
        z = self.encoder(batch.x)
        return Losses({"cross_entropy": telling_apart(z, self.opponent)})
