"""Base class of causal models with nonlinear mechanisms and a layered decoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec, complete_labels
from disentwine.causal.constraints import Knowledge
from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.models.causal.base import CausalModel, Edges
from disentwine.models.causal.pixel_attribution import Composition, learn_composition
from disentwine.nn.concept_layers import LabelBuffer
from disentwine.nn.encoders import ImageShape, Network, perceptron
from disentwine.nn.layered_decoder import (
    SHARED_PIXEL,
    ComponentKinds,
    LayeredDecoder,
    fourier_features,
)
from disentwine.nn.mechanisms import (
    CategoricalMechanism,
    GaussianMixture,
    image_seeded_uniform,
)

MEDIAN_IMAGES = 500


def median_image_logits(dataset: Dataset) -> Tensor:
    """Logits (channels, height, width) of each pixel's median over a sample of training images.

    >>> from disentwine.data import Pendulum
    >>> median_image_logits(Pendulum(size=32)).shape
    torch.Size([3, 32, 32])
    """
    indices = np.random.default_rng(0).permutation(dataset.split["train"])[:MEDIAN_IMAGES]
    median = torch.from_numpy(np.median(dataset.images[indices], axis=0) / 255).permute(2, 0, 1)
    return torch.logit(median.clamp(0.01, 0.99))


FREQUENCIES = 1
"""Fourier frequencies of causes; with more, mechanisms oscillate between the training values of a cause."""

ERROR_MOMENTUM = 0.01
"""Weight of one batch in running means of errors."""


class LayeredModel(CausalModel[Tensor]):
    r"""Mechanisms $z_i = f_i(z_{pa(i)}) + n_i$ with a network $f_i$ for each effect, concepts z supervised
    by labels, and an image composed of layers, each decoded from the concepts that its pixels depend on.

    For an effect with few values, $f_i$ predicts their probabilities, and interventions keep the quantile
    of the effect (see `CategoricalMechanism`).

    Subclasses add the encoder and the loss.

    Arguments:
        image_shape, concept_spec, graph, composition: read from the data set.
        label_std: s, standard deviation of the prior around the label, in units of that of the label.
        teacher_forcing: share of training images that are decoded from labels, not from latents.
        edges, knowledge: options of causal discovery.
        network: name of the encoder's network.
        encoder: the encoder.
        joint: component decoders of groups of several concepts, see `LayeredDecoder`.
    """

    noise_mean: Tensor
    encoder_error: Tensor
    mechanism_error: Tensor
    fixed_by_data: ClassVar[tuple[str, ...]] = (*CausalModel.fixed_by_data, "composition")

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        graph: Graph,
        composition: Composition,
        *,
        label_std: float,
        teacher_forcing: float,
        edges: Edges | None,
        knowledge: Knowledge,
        network: Network,
        encoder: nn.Module,
        joint: ComponentKinds = SHARED_PIXEL,
    ) -> None:
        super().__init__(image_shape, concept_spec, graph)
        self.composition = composition
        self.label_std = label_std
        self.teacher_forcing = teacher_forcing
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.encoder = encoder
        self.decoder = LayeredDecoder(
            composition.concept_groups,
            image_shape=image_shape,
            group_boxes=composition.group_boxes,
            joint=joint,
        )
        self.labels = LabelBuffer(len(graph.names))
        self.causes = {
            i: [graph.names.index(cause) for cause in graph.parents(name)]
            for i, name in enumerate(graph.names)
            if graph.parents(name)
        }
        # Compositions of early versions have no discrete values.
        values = composition.discrete_values
        categorical = {i: values[i] for i in self.causes if values and values[i]}
        self.categorical = tuple(categorical)
        self.order = [graph.names.index(name) for name in graph.order]
        self.mechanisms = nn.ModuleDict(
            {
                str(i): perceptron([len(causes) * (1 + 2 * FREQUENCIES), 128, 128, outputs])
                for i, causes in self.causes.items()
                for outputs in [len(categorical[i]) - 1 if i in categorical else 1]
            }
        )
        self.noise = nn.ModuleDict(
            {
                str(i): CategoricalMechanism(
                    ((torch.tensor(categorical[i]) - self.mean[i]) / self.scale[i]).tolist()
                )
                if i in categorical
                else GaussianMixture(min_std=label_std)
                for i in self.causes
            }
        )

        # Constants of mechanism and noise are not identified separately; this is the running noise mean.
        self.register_buffer("noise_mean", torch.zeros(len(graph.names)))
        # Running mean squared errors of the encoder and of the mechanisms against labels.
        self.register_buffer("encoder_error", torch.ones(len(graph.names)))
        self.register_buffer("mechanism_error", torch.ones(len(graph.names)))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return cls._arguments_and_masks(dataset, options)[0]

    @classmethod
    def _arguments_and_masks(
        cls, dataset: Dataset, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Tensor]:
        """The arguments in `fixed_by_data`, and the mask of each group."""
        fixed = super().data_arguments(dataset, options)
        composition, group_masks = learn_composition(dataset, fixed["graph"])
        return fixed | {"composition": composition}, group_masks

    @classmethod
    def build(cls, dataset: Dataset, options: Mapping[str, Any]) -> Self:
        cls.check_options(options)
        fixed, group_masks = cls._arguments_and_masks(dataset, options)
        model = super().build(dataset, fixed | dict(options))
        model.decoder.group_masks.copy_(group_masks)
        return model

    def initialise_from(self, dataset: Dataset) -> None:
        with torch.no_grad():
            self.decoder.background.copy_(median_image_logits(dataset))
            self.labels.fill(self.standardise(torch.from_numpy(complete_labels(dataset))))

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """Standardised concepts (n, k) inferred from images by the encoder."""

    def mechanism(self, i: int, z: Tensor) -> Tensor:
        """The mean (n,) of a concept given its causes."""
        f, noise = self._mechanism_output(i, z), self.noise[str(i)]
        return (
            noise.mean(f)
            if isinstance(noise, CategoricalMechanism)
            else f[:, 0] + self.noise_mean[i]
        )

    def _mechanism_output(self, i: int, z: Tensor) -> Tensor:
        """$f_i$ of a concept's causes: logits of a `CategoricalMechanism`, or (n, 1), without the mean of
        the noise."""
        f: Tensor = self.mechanisms[str(i)](fourier_features(z[:, self.causes[i]], FREQUENCIES))
        return f

    def _log_likelihood(self, i: int, u: Tensor) -> Tensor:
        """Log-likelihood (n,) of the labels of an effect given those of its causes."""
        f, noise = self._mechanism_output(i, u), self.noise[str(i)]
        if isinstance(noise, CategoricalMechanism):
            return noise.log_probability(u[:, i], f)
        return cast(GaussianMixture, noise).log_density(u[:, i] - f[:, 0])

    def labels_to_decode(self, u: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
        """Teacher forcing: mask (n, 1) of images to decode from labels, and labels (n, k) with noise.

        Arguments:
            u: (n, k) standardised labels.
            labelled: (n,) True where an image has all labels.
        """
        chosen = torch.rand(len(u), 1, device=u.device) < self.teacher_forcing
        return labelled[:, None] & chosen, u + self.label_std * torch.randn_like(u)

    def mechanism_terms(self, u: Tensor, labelled: Tensor) -> dict[str, Tensor]:
        r"""$-\sum_i \log p_i(u_i - f_i(u_{pa(i)}))$ of labels, (n,), with a learnt density $p_i$ of each
        mechanism's noise, and $-\log p_i(u_i | u_{pa(i)})$ for categorical mechanisms; empty for a
        graph without edges."""
        if not self.causes:
            return {}
        negative_log_likelihoods = [-self._log_likelihood(i, u) for i in self.causes]
        return {"mechanisms": torch.stack(negative_log_likelihoods).sum(0) * labelled}

    def abduct(self, x: Tensor) -> Tensor:
        """Concepts (n, k), and for each categorical mechanism a uniform sample, which selects a quantile
        among those of the value. It is not determined by the image, and sampled with the image as seed."""
        return torch.cat([self.infer(x), image_seeded_uniform(x, len(self.categorical))], dim=1)

    def infer(self, x: Tensor) -> Tensor:
        """Concepts (n, k) of images, from the encoder and the mechanisms."""
        return self.merge(self.encode(x))

    def merge(self, z: Tensor) -> Tensor:
        """Precision-weighted means (n, k) of each effect's encoding and its mechanism's prediction.

        The accuracy of the encoder is limited by the resolution of images. Effects with large noise keep
        their encoding.
        """
        merged = list(z.unbind(1))
        for i in self.order:
            if i in self.causes:
                predicted = self.mechanism(i, torch.stack(merged, dim=1))
                share = self.encoder_error[i] / (self.encoder_error[i] + self.mechanism_error[i])
                merged[i] = torch.lerp(merged[i], predicted, share)
        return torch.stack(merged, dim=1)

    def noise_of(self, z: Tensor) -> Tensor:
        """Noise (n, k) of concepts: $n_i = z_i - f_i(z_{pa(i)})$; $n_i = z_i$ for a root."""
        noise = list(z.unbind(1))
        for i in self.causes:
            noise[i] = z[:, i] - self.mechanism(i, z)
        return torch.stack(noise, dim=1)

    def concepts_of_noise(self, noise: Tensor) -> Tensor:
        """Concepts (n, k) from noise: the inverse of `noise_of`."""
        z = list(noise.unbind(1))
        for i in self.order:
            if i in self.causes:
                z[i] = noise[:, i] + self.mechanism(i, torch.stack(z, dim=1))
        return torch.stack(z, dim=1)

    @torch.no_grad()
    def update_errors(self, z: Tensor, u: Tensor, labelled: Tensor) -> None:
        """Update the running means of both errors and of the noise, over images with all labels."""
        if not labelled.any():
            return
        z, u = z[labelled], u[labelled]
        for i in self.causes.keys() - set(self.categorical):
            self.noise_mean[i] += ERROR_MOMENTUM * (u[:, i] - self.mechanism(i, u)).mean()
        merged = self.merge(z)
        self.encoder_error.lerp_((z - u).square().mean(0), ERROR_MOMENTUM)
        for i in self.causes:
            error = (self.mechanism(i, merged) - u[:, i]).square().mean()
            self.mechanism_error[i].lerp_(error, ERROR_MOMENTUM)

    def prior(self, n: int) -> Tensor:
        """Latents sampled around labels of training images."""
        u = self.labels.sample(n)
        uniform = torch.rand(n, len(self.categorical), device=u.device)
        return torch.cat([u + self.label_std * torch.randn_like(u), uniform], dim=1)

    def values(self, latents: Tensor) -> Tensor:
        return latents[:, : len(self.mean)]

    def propagate(self, latents: Tensor, interventions: Mapping[int, Tensor]) -> Tensor:
        """Effects keep their noise: $z_i' = f_i(z_{pa}') + (z_i - f_i(z_{pa}))$, or their quantile for
        categorical mechanisms."""
        after = list(latents.unbind(1))
        for i, value in interventions.items():
            after[i] = value
        for i in self.affected_by(interventions):
            after[i] = self._counterfactual_effect(i, latents, torch.stack(after, dim=1))
        return torch.stack(after, dim=1)

    def _counterfactual_effect(self, i: int, before: Tensor, after: Tensor) -> Tensor:
        """Counterfactual effect (n,) given the causes in `after`, with the factual noise or quantile."""
        noise = self.noise[str(i)]
        if not isinstance(noise, CategoricalMechanism):
            return before[:, i] + (self.mechanism(i, after) - self.mechanism(i, before))
        uniform = before[:, len(self.mean) + self.categorical.index(i)]
        return noise.counterfactual(
            before[:, i],
            self._mechanism_output(i, before),
            self._mechanism_output(i, after),
            uniform,
        )

    def decode_latents(self, latents: Tensor) -> Tensor:
        image: Tensor = self.decoder(latents)
        return image
