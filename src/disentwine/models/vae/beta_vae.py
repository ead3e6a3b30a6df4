"""Beta-VAE with constant weight, annealed weight, or increasing capacity."""

from __future__ import annotations

from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.plan import TrainingSettings, unfinished_warm_up
from disentwine.core.types import Count, NonNegative, NonNegativeInt
from disentwine.errors import UsageError
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.losses.schedules import linear
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.encoders import ImageShape, Likelihood, Network


class BetaVAE(LatentModel):
    r"""Beta-VAE: maximise $\mathbb{E}_{q(z|x)} \log p(x|z) - \beta D_{KL}(q(z|x) \,\|\, p(z))$ (eq. 4), or
    with a capacity $\mathbb{E}_{q(z|x)} \log p(x|z) - \beta\,|D_{KL}(q(z|x) \,\|\, p(z)) - C|$.

    References: beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework,
    I. Higgins et al., 2017, eq. 4; Understanding disentangling in beta-VAE, C. Burgess et al., 2018, eq. 8.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        beta: weight of the KL divergence (gamma of Burgess et al. with a capacity).
        capacity: C after the warm-up, in nats; without it the objective of 2017 is used.
        start_beta: initial weight of the KL divergence; 0 when omitted. With a large initial weight, few
            factors are learnt at a time, each in a separate latent; factors learnt at the same time may
            stay entangled.
        warm_up_steps: updates over which the weight changes linearly from `start_beta` to `beta` or, with
            a capacity, C increases linearly from 0.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> import torch
    >>> model = BetaVAE(image_shape=(16, 16, 1), latent=4, beta=4.0)
    >>> model.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).weights
    {'kl': 4.0}
    """

    not_in_weights = ("beta", "capacity", "start_beta", "warm_up_steps")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        beta: NonNegative = 4.0,
        capacity: NonNegative | None = None,
        start_beta: NonNegative | None = None,
        warm_up_steps: NonNegativeInt = 0,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        if start_beta is not None and not warm_up_steps:
            raise UsageError(
                "start_beta: also give warm_up_steps, over which the weight changes to beta"
            )
        if start_beta is not None and capacity is not None:
            raise UsageError(
                "start_beta: leave it out, or capacity; with a capacity the weight is constant"
            )
        self.beta = beta
        self.capacity = capacity
        self.start_beta = start_beta
        self.warm_up_steps = warm_up_steps

    for_data = ForData(__init__)

    def check_training(self, options: TrainingSettings) -> list[str]:
        """A warning if training is shorter than the warm-up."""
        warnings = unfinished_warm_up(
            options, self.warm_up_steps, start=self.start_beta, end=self.beta
        )
        return [*warnings, *super().check_training(options)]

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction and weighted KL divergence, in nats."""
        q = self.posterior(batch.x)
        log_likelihood = self.reconstruction_log_likelihood(batch.x, q.sample())
        kl = kl_to_standard_normal(q.mean, q.log_variance).sum(1)
        terms = {"reconstruction": -log_likelihood, "kl": kl}
        if self.capacity is None:
            beta = linear(
                batch.step, start=self.start_beta, end=self.beta, steps=self.warm_up_steps
            )
            return Losses(terms, {"kl": beta})
        C = linear(batch.step, end=self.capacity, steps=self.warm_up_steps)
        terms["capacity_gap"] = (kl.mean() - C).abs()
        return Losses(terms, {"kl": 0.0, "capacity_gap": self.beta})
