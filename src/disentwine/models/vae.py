"""The variational autoencoder."""

from __future__ import annotations

from disentwine.contracts.model import Batch, Losses
from disentwine.contracts.ranges import Count, NonNegativeInt
from disentwine.models.latent import LatentModel
from disentwine.models.pixels import Likelihood
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.networks import Network
from disentwine.objectives.elbo import kl_to_standard_normal
from disentwine.objectives.schedules import linear


class VAE(LatentModel):
    r"""Maximise $\mathbb{E}_{q(z|x)} \log p(x|z) - D_{KL}(q(z|x) \,\|\, p(z))$.

    Reference: Auto-Encoding Variational Bayes, D. Kingma and M. Welling, 2014, eq. 10.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.
        warm_up_steps: updates over which the divergence's weight rises from 0 to 1.

    >>> import torch
    >>> vae = VAE(image_shape=(16, 16, 1), latent=4)
    >>> vae.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).terms["kl"].shape
    torch.Size([8])
    """

    def __init__(
        self,
        *,
        image_shape: ImageShape,
        latent: Count = 10,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
        warm_up_steps: NonNegativeInt = 0,
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        self.warm_up_steps = warm_up_steps

    def loss(self, batch: Batch) -> Losses:
        """The negative evidence lower bound in nats."""
        q = self.posterior(batch.x)
        log_likelihood = self.reconstruction_log_likelihood(batch.x, q.sample())
        kl = kl_to_standard_normal(q.mean, q.log_variance).sum(1)
        weight = linear(batch.step, end=1.0, steps=self.warm_up_steps)
        return Losses({"reconstruction": -log_likelihood, "kl": kl}, {"kl": weight})
