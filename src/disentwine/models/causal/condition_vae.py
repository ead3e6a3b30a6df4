"""ConditionVAE: concepts tied to labels, none of which causes another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from disentwine.causal.concepts import complete_labels, label_arguments
from disentwine.causal.graph import Graph
from disentwine.causal.interventions import LabelValues, label_values
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, Positive, Share
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.causal.base import CausalModel
from disentwine.nn.distributions import Likelihood, PixelDecoder
from disentwine.nn.encoders import ImageShape, Network
from disentwine.nn.labels import LabelBuffer, LabelledEncoder, hide_rows


class ConditionVAE(CausalModel[Tensor]):
    r"""$z = h(x, u) + \zeta$, $x = f(z) + \xi$; maximise $\mathbb{E}_{q(z|x,u)} \log p(x|z)
    - D_{KL}(q(z|x,u) \,\|\, p(z|u))$ with $p(z_i|u_i) = \mathcal{N}(u_i, \lambda_2^2)$ (eq. 7): CausalVAE
    without its causal layer and its mask layer.

    Its graph has no edges, so that a concept that is set moves alone. Labels are shown to the
    encoder for a share of the training images only; where one is missing the prior is
    $\mathcal{N}(0, 1)$.

    References: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, section 6.1; Learning Structured Output Representation using Deep
    Conditional Generative Models, K. Sohn et al., 2015.

    Arguments:
        image_shape, concept_names, label_mean, label_scale, label_values: `for_data` reads them from
            the data set.
        dimensions: d, numbers a concept.
        label_std: $\lambda_2$, 1 in the paper; smaller ties concepts more closely to labels.
        label_dropout: share of training images whose labels the encoder is not shown.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> model = ConditionVAE.for_data(pendulum)
    >>> model.do(pendulum.images[0], light_angle=60).shape
    (32, 32, 3)
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = tuple(
        name for name in CausalModel.fixed_by_data if name != "learnt_graph"
    )

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        label_values: LabelValues = (),
        dimensions: Count = 4,
        label_std: Positive = 1.0,
        label_dropout: Share = 0.5,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            concept_names=concept_names,
            label_mean=label_mean,
            label_scale=label_scale,
            learnt_graph=Graph.from_edges(concept_names, ()).to_json(),
            label_values=label_values,
        )
        self.dimensions = dimensions
        self.label_std = label_std
        self.label_dropout = label_dropout
        self.network = network
        self.likelihood = likelihood
        k, latent = len(concept_names), len(concept_names) * dimensions
        self.h = LabelledEncoder(image_shape, labels=k, latent=latent, network=network)
        self.f = PixelDecoder(latent, image_shape, network=network, likelihood=likelihood)
        self.labels = LabelBuffer(k)

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        fixed = label_arguments(dataset, needed_by=cls.__name__)
        return fixed | {"label_values": label_values(dataset)}

    def initialise_from(self, dataset: Dataset) -> None:
        complete = complete_labels(dataset)
        if len(complete):
            self.labels.fill(self.standardise(torch.from_numpy(complete)))

    def loss(self, batch: Batch) -> Losses:
        """The negative evidence lower bound, in nats."""
        u, known = self.labels_of(batch)
        q = self.h(batch.x, u, hide_rows(known, self.label_dropout))
        # A missing label is 0 once standardised, and its prior the standard normal one.
        deviation = 1 + (self.label_std - 1) * known
        u, deviation = (
            values.repeat_interleave(self.dimensions, dim=1) for values in (u, deviation)
        )
        from_label = (q.mean - u) / deviation
        log_variance = q.log_variance - 2 * deviation.log()
        return Losses(
            {
                "reconstruction": -self.f.log_likelihood(batch.x, q.sample()),
                "kl": kl_to_standard_normal(from_label, log_variance).sum(1),
            }
        )

    def abduct(self, x: Tensor) -> Tensor:
        mean: Tensor = self.h(x).mean
        return mean.view(len(x), -1, self.dimensions)

    def prior(self, n: int) -> Tensor:
        """$p(z|u)$ under the labels of training images."""
        u = self.labels.draw(n)[..., None].expand(-1, -1, self.dimensions)
        return u + self.label_std * torch.randn_like(u)

    def values(self, latents: Tensor) -> Tensor:
        return latents.mean(-1)

    def move(self, latents: Tensor, moved: Mapping[int, Tensor]) -> Tensor:
        """A concept's d numbers move together, and nothing else does."""
        z = latents.clone()
        for i, value in moved.items():
            z[:, i] += (value - latents[:, i].mean(-1))[:, None]
        return z

    def paint(self, latents: Tensor) -> Tensor:
        image: Tensor = self.f(latents.flatten(1))
        return image
