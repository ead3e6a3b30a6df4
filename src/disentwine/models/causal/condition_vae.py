"""ConditionVAE: supervised concepts without a causal graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from disentwine.causal.concepts import ConceptSpec, complete_labels
from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, Positive, Share
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.causal.base import CausalModel
from disentwine.nn.concept_layers import LabelBuffer, LabelledEncoder, drop_labels
from disentwine.nn.encoders import ImageShape, Likelihood, Network, PixelDecoder


class ConditionVAE(CausalModel[Tensor]):
    r"""$z = h(x, u) + \zeta$, $x = f(z) + \xi$; maximise $\mathbb{E}_{q(z|x,u)} \log p(x|z)
    - D_{KL}(q(z|x,u) \,\|\, p(z|u))$ with $p(z_i|u_i) = \mathcal{N}(u_i, \lambda_2^2)$ (eq. 7): CausalVAE
    without its causal layer and its mask layer.

    Its graph has no edges, so an intervention changes no other concept. Labels are dropped from the input
    of the encoder for a part of the training images. The prior of a missing label is
    $\mathcal{N}(0, 1)$.

    References: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, section 6.1; Learning Structured Output Representation using Deep
    Conditional Generative Models, K. Sohn et al., 2015.

    Arguments:
        image_shape, concept_spec: `for_data` reads them from the data set.
        dimensions: d, latents per concept.
        label_std: $\lambda_2$, 1 in the paper; with smaller values, concepts follow the labels more
            closely.
        label_dropout: share of training images whose labels are hidden from the encoder.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> model = ConditionVAE.for_data(pendulum)
    >>> model.do(pendulum.images[0], light_angle=60).shape
    (32, 32, 3)
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "concept_spec")

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        *,
        dimensions: Count = 4,
        label_std: Positive = 1.0,
        label_dropout: Share = 0.5,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(image_shape, concept_spec, Graph.from_edges(concept_spec.names, ()))
        self.dimensions = dimensions
        self.label_std = label_std
        self.label_dropout = label_dropout
        self.network = network
        self.likelihood = likelihood
        k = len(concept_spec.concepts)
        latent = k * dimensions
        self.h = LabelledEncoder(image_shape, labels=k, latent=latent, network=network)
        self.f = PixelDecoder(latent, image_shape, network=network, likelihood=likelihood)
        self.labels = LabelBuffer(k)

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        concept_spec = ConceptSpec.from_dataset(dataset, needed_by=cls.__name__)
        return {"image_shape": dataset.image_shape, "concept_spec": concept_spec}

    def initialise_from(self, dataset: Dataset) -> None:
        complete = complete_labels(dataset)
        if len(complete):
            self.labels.fill(self.standardise(torch.from_numpy(complete)))

    def loss(self, batch: Batch) -> Losses:
        """The negative ELBO in nats."""
        u, known = self.labels_of(batch)
        q = self.h(batch.x, u, drop_labels(known, self.label_dropout))
        # Standardised missing labels are 0, and their prior is a standard normal.
        std = 1 + (self.label_std - 1) * known
        u, std = (values.repeat_interleave(self.dimensions, dim=1) for values in (u, std))
        from_label = (q.mean - u) / std
        log_variance = q.log_variance - 2 * std.log()
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
        """Samples of $p(z|u)$ for labels of training images."""
        u = self.labels.sample(n)[..., None].expand(-1, -1, self.dimensions)
        return u + self.label_std * torch.randn_like(u)

    def values(self, latents: Tensor) -> Tensor:
        return latents.mean(-1)

    def propagate(self, latents: Tensor, interventions: Mapping[int, Tensor]) -> Tensor:
        """Shift the d latents of each concept that is set; all others are unchanged."""
        z = latents.clone()
        for i, value in interventions.items():
            z[:, i] += (value - latents[:, i].mean(-1))[:, None]
        return z

    def decode_latents(self, latents: Tensor) -> Tensor:
        image: Tensor = self.f(latents.flatten(1))
        return image
