"""FactorVAE: total correlation estimated by a discriminator."""

from __future__ import annotations

from torch import Tensor

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive
from disentwine.losses.adversarial import discriminator_loss, permute_dimensions
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.encoders import ImageShape, Likelihood, Network, perceptron

HIDDEN_LAYERS = 6


class FactorVAE(LatentModel):
    r"""FactorVAE: maximise $\mathbb{E}_{q(z|x)} \log p(x|z) - D_{KL}(q(z|x) \,\|\, p(z))
    - \gamma D_{KL}(q(z) \,\|\, \bar q(z))$ with $\bar q(z) = \prod_j q(z_j)$ (eq. 2). The last
    term, the total correlation, is $\mathbb{E}_{q(z)} \log \frac{D(z)}{1 - D(z)}$ for a discriminator D
    between latents and permuted latents (eq. 3).

    The discriminator is trained on separate batches. Algorithm 2 permutes the latents of a second batch;
    here the latents of the same batch are permuted, so that both samples have the same marginals and
    differ only in their dependence.

    Reference: Disentangling by Factorising, H. Kim and A. Mnih, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        gamma: weight of the total correlation; 35 for 2D shapes in the paper.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.
        discriminator_units: width of the six hidden layers of the discriminator.
        discriminator_learning_rate: learning rate of the discriminator.

    >>> import torch
    >>> model = FactorVAE(image_shape=(16, 16, 1), latent=4, discriminator_units=32)
    >>> batch = Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))
    >>> model.loss(batch).weights, list(model.discriminator_loss(batch).terms)
    ({'total_correlation': 35.0}, ['cross_entropy'])
    """

    not_in_weights = ("gamma", "discriminator_learning_rate")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        gamma: NonNegative = 35.0,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
        discriminator_units: Count = 1000,
        discriminator_learning_rate: Positive = 1e-4,
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        self.gamma = gamma
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator = perceptron(
            [latent, *[discriminator_units] * HIDDEN_LAYERS, 1], slope=0.2
        )
        self.discriminator_training = DiscriminatorTraining(
            discriminator_learning_rate, betas=(0.5, 0.9)
        )

    for_data = ForData(__init__)

    def discriminate(self, z: Tensor) -> Tensor:
        r"""Log density ratio $\log \frac{D(z)}{1 - D(z)}$ of latents (n, latent), (n,) nats."""
        logits: Tensor = self.discriminator(z)
        return logits[:, 0]

    def loss(self, batch: Batch) -> Losses:
        """The negative ELBO and the estimated total correlation, in nats."""
        q = self.posterior(batch.x)
        z = q.sample()
        terms = {
            "reconstruction": -self.reconstruction_log_likelihood(batch.x, z),
            "kl": kl_to_standard_normal(q.mean, q.log_variance).sum(1),
            "total_correlation": self.discriminate(z),
        }
        return Losses(terms, {"total_correlation": self.gamma})

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Cross-entropy between latents and permuted latents (algorithm 2)."""
        z = self.posterior(batch.x).sample()
        permuted = permute_dimensions(z)
        return Losses(
            {"cross_entropy": discriminator_loss(self.discriminate(z), self.discriminate(permuted))}
        )
