"""The Wasserstein autoencoder with the maximum mean discrepancy."""

from __future__ import annotations

from disentwine.contracts.model import Batch, Losses
from disentwine.contracts.ranges import Count, NonNegative
from disentwine.models.autoencoder import Autoencoder
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import Network
from disentwine.objectives.mmd import mmd


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

    def __init__(
        self,
        *,
        image_shape: ImageShape,
        latent: Count = 10,
        lambda_mmd: NonNegative = 10.0,
        network: Network = "compact",
    ) -> None:
        super().__init__(image_shape=image_shape, latent=latent, network=network)
        self.lambda_mmd = lambda_mmd

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
