"""Beta-TCVAE: separate weights for the three parts of the KL divergence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative
from disentwine.losses.total_correlation import DensityEstimator, decompose_kl
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.encoders import ImageShape, Likelihood, Network


class BetaTCVAE(LatentModel):
    r"""Beta-TCVAE: maximise $\mathbb{E}_{q(z|n)} \log p(n|z) - \alpha I_q(z; n)
    - \beta D_{KL}(q(z) \,\|\, \prod_j q(z_j)) - \gamma \sum_j D_{KL}(q(z_j) \,\|\, p(z_j))$ (eq. 4).

    Reference: Isolating Sources of Disentanglement in Variational Autoencoders, R. Chen, X. Li,
    R. Grosse and D. Duvenaud, 2018.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        training_images: N, number of training images; `for_data` reads it from the data set.
        latent: number of latent dimensions.
        alpha: weight of the index-code mutual information.
        beta: weight of the total correlation.
        gamma: weight of the dimension-wise KL divergence.
        estimator: of $\log q(z)$, "stratified" or "weighted".
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> import torch
    >>> model = BetaTCVAE(image_shape=(16, 16, 1), training_images=100, latent=4)
    >>> list(model.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).terms)
    ['reconstruction', 'index_code_mi', 'total_correlation', 'dimension_wise_kl']
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "training_images")
    not_in_weights = ("alpha", "beta", "gamma", "estimator")

    def __init__(
        self,
        image_shape: ImageShape,
        training_images: Count,
        *,
        latent: Count = 10,
        alpha: NonNegative = 1.0,
        beta: NonNegative = 6.0,
        gamma: NonNegative = 1.0,
        estimator: DensityEstimator = "stratified",
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        self.training_images = training_images
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.estimator = estimator

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "image_shape": dataset.image_shape,
            "training_images": len(dataset.split["train"]),
        }

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction and the weighted parts of the KL divergence, in nats."""
        q = self.posterior(batch.x)
        z = q.sample()
        parts = decompose_kl(
            z,
            q.mean,
            q.log_variance,
            dataset_size=self.training_images,
            estimator=self.estimator,
        )
        return Losses(
            {
                "reconstruction": -self.reconstruction_log_likelihood(batch.x, z),
                **parts._asdict(),
            },
            {
                "index_code_mi": self.alpha,
                "total_correlation": self.beta,
                "dimension_wise_kl": self.gamma,
            },
        )
