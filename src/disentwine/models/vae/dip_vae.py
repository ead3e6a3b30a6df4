"""DIP-VAE-I and DIP-VAE-II: penalties on the covariance of the latents."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.plan import TrainingSettings, unfinished_warm_up
from disentwine.core.types import Count, NonNegative, NonNegativeInt
from disentwine.errors import UsageError
from disentwine.losses.dip import (
    covariance_of_latents,
    covariance_of_means,
    diagonal_penalty,
    off_diagonal_penalty,
    third_moment_penalty,
)
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.losses.schedules import linear
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.encoders import DiagonalGaussian, ImageShape, Likelihood, Network


class DIPVAE(LatentModel):
    r"""Base of DIP-VAE: maximise $\mathrm{ELBO} - \lambda_{od} \sum_{i \neq j} C_{ij}^2
    - \lambda_d \sum_i (C_{ii} - 1)^2 - \lambda_3 \|m\|^2$ (eq. 6 and 7).

    Subclasses define the covariance C. m are the third central moments of $q(z)$; they are left out if
    `lambda_3` is None.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018.

    Arguments: as in `DIPVAEII`.
    """

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: int,
        lambda_od: float,
        lambda_d: float,
        lambda_3: float | None,
        start_beta: float | None,
        warm_up_steps: int | None,
        network: Network,
        likelihood: Likelihood,
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        if start_beta is not None and not warm_up_steps:
            raise UsageError(
                "start_beta: also give warm_up_steps, over which the weight changes to 1"
            )
        self.lambda_od, self.lambda_d, self.lambda_3 = lambda_od, lambda_d, lambda_3
        self.start_beta = start_beta
        self.warm_up_steps = warm_up_steps

    def check_training(self, options: TrainingSettings) -> list[str]:
        """A warning if training is shorter than the warm-up."""
        warnings = unfinished_warm_up(options, self.warm_up_steps, start=self.start_beta)
        return [*warnings, *super().check_training(options)]

    @abstractmethod
    def covariance(self, q: DiagonalGaussian) -> Tensor:
        """The penalised covariance (latent, latent), from the posteriors of a batch."""

    def loss(self, batch: Batch) -> Losses:
        """The negative ELBO in nats, and the penalties on the moments of q(z)."""
        q = self.posterior(batch.x)
        C = self.covariance(q)
        terms = {
            "reconstruction": -self.reconstruction_log_likelihood(batch.x, q.sample()),
            "kl": kl_to_standard_normal(q.mean, q.log_variance).sum(1),
            "off_diagonal": off_diagonal_penalty(C),
            "diagonal": diagonal_penalty(C),
        }
        weights = {
            "kl": linear(batch.step, start=self.start_beta, end=1.0, steps=self.warm_up_steps),
            "off_diagonal": self.lambda_od,
            "diagonal": self.lambda_d,
        }
        if self.lambda_3 is not None:
            terms["third_moments"] = third_moment_penalty(q.mean, q.log_variance)
            weights["third_moments"] = self.lambda_3
        return Losses(terms, weights)


class DIPVAEI(DIPVAE):
    r"""DIP-VAE-I: maximise $\mathrm{ELBO} - \lambda_{od} \sum_{i \neq j} C_{ij}^2
    - \lambda_d \sum_i (C_{ii} - 1)^2$ with $C = \mathrm{Cov}_{p(x)}[\mu(x)]$ (eq. 6).

    Suited to data with at least as many factors as latents: all latents stay active.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_od: weight of the off-diagonal covariances.
        lambda_d: weight of the variances; 10 times `lambda_od` for 2D shapes, 50 times for CelebA.
        start_beta: initial weight of the KL divergence; 0 when omitted, so that re-initialised latents
            (`training.reset_inactive_latents`) become active before the weight increases.
        warm_up_steps: updates over which the weight changes linearly from `start_beta` to 1; when omitted,
            the weight is 1.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> import torch
    >>> model = DIPVAEI(image_shape=(16, 16, 1), latent=4)
    >>> model.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).weights
    {'kl': 1.0, 'off_diagonal': 10.0, 'diagonal': 100.0}
    """

    not_in_weights = ("lambda_od", "lambda_d", "start_beta", "warm_up_steps")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        lambda_od: NonNegative = 10.0,
        lambda_d: NonNegative = 100.0,
        start_beta: NonNegative | None = None,
        warm_up_steps: NonNegativeInt | None = None,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape,
            latent=latent,
            lambda_od=lambda_od,
            lambda_d=lambda_d,
            lambda_3=None,
            start_beta=start_beta,
            warm_up_steps=warm_up_steps,
            network=network,
            likelihood=likelihood,
        )

    for_data = ForData(__init__)

    def covariance(self, q: DiagonalGaussian) -> Tensor:
        """Covariance of the posterior means, (latent, latent)."""
        return covariance_of_means(q.mean)


class DIPVAEII(DIPVAE):
    r"""DIP-VAE-II: maximise $\mathrm{ELBO} - \lambda_{od} \sum_{i \neq j} C_{ij}^2
    - \lambda_d \sum_i (C_{ii} - 1)^2 - \lambda_3 \|m\|^2$ with $C = \mathrm{Cov}_{q(z)}[z]$ (eq. 7) and
    the third central moments m of $q(z)$.

    Suited to data with fewer factors than latents: some latents may stay inactive.

    Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
    A. Kumar, P. Sattigeri and A. Balakrishnan, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        lambda_od: weight of the off-diagonal covariances.
        lambda_d: weight of the variances; as `lambda_od` for 2D shapes, half of it for CelebA.
        lambda_3: weight of the third moments; 200 for 2D shapes, 0 for CelebA.
        start_beta: initial weight of the KL divergence; 0 when omitted. With a large initial weight, few
            factors are learnt at a time, each in a separate latent; factors learnt at the same time may
            stay entangled.
        warm_up_steps: updates over which the weight changes linearly from `start_beta` to 1; when omitted,
            the weight is 1.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> import torch
    >>> model = DIPVAEII(image_shape=(16, 16, 1), latent=4, lambda_3=200)
    >>> model.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).weights
    {'kl': 1.0, 'off_diagonal': 5.0, 'diagonal': 5.0, 'third_moments': 200}
    """

    not_in_weights = ("lambda_od", "lambda_d", "lambda_3", "start_beta", "warm_up_steps")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        lambda_od: NonNegative = 5.0,
        lambda_d: NonNegative = 5.0,
        lambda_3: NonNegative = 0.0,
        start_beta: NonNegative | None = None,
        warm_up_steps: NonNegativeInt | None = None,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape,
            latent=latent,
            lambda_od=lambda_od,
            lambda_d=lambda_d,
            lambda_3=lambda_3,
            start_beta=start_beta,
            warm_up_steps=warm_up_steps,
            network=network,
            likelihood=likelihood,
        )

    for_data = ForData(__init__)

    def covariance(self, q: DiagonalGaussian) -> Tensor:
        """Covariance of the latents, (latent, latent)."""
        return covariance_of_latents(q.mean, q.log_variance)
