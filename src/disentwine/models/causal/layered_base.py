"""Median image logits; layered-decoder causal model base."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.causal.concepts import complete_labels, effect_levels
from disentwine.causal.constraints import Knowledge
from disentwine.causal.graph import Graph
from disentwine.causal.interventions import LabelValues
from disentwine.core.dataset import Dataset
from disentwine.models.causal.base import CausalModel, Edges
from disentwine.models.causal.pixel_attribution import box_around, learn_regions
from disentwine.nn.encoders import ImageShape, Network, perceptron
from disentwine.nn.labels import LabelBuffer
from disentwine.nn.layered_decoder import SHARING, Box, LayeredDecoder, Painters, fourier_features
from disentwine.nn.mechanisms import CategoricalMechanism, GaussianMixture, chances

IMAGES = 500


def median_image_logits(dataset: Dataset) -> Tensor:
    """The logit of each pixel's median over some training images, (channels, height, width).

    >>> from disentwine.data import Pendulum
    >>> median_image_logits(Pendulum(size=32)).shape
    torch.Size([3, 32, 32])
    """
    some = np.random.default_rng(0).permutation(dataset.split["train"])[:IMAGES]
    median = torch.from_numpy(np.median(dataset.images[some], axis=0) / 255).permute(2, 0, 1)
    return torch.logit(median.clamp(0.01, 0.99))


FREQUENCIES = 1
"""Of what mechanisms see: with more, they bend between the few values that a cause takes in training."""

ERROR_PACE = 0.01


class LayeredModel(CausalModel[Tensor]):
    r"""$z_i = f_i(z_{pa(i)}) + n_i$ with a network $f_i$ each, codes z that are tied to the labels, and an
    image that is painted in layers, each from the few concepts that its pixels depend on.

    Of an effect that has few values, $f_i$ says how likely each is, and an image keeps the quantile at
    which its own lies (see `CategoricalMechanism`): under other causes it has the value there, one of
    the few.

    A subclass adds how codes are read from images, and its `loss`.

    Arguments:
        image_shape, concept_names, label_mean, label_scale, learnt_graph, groups, boxes, levels,
            label_values: as the data set decides them.
        label_std: s, the standard deviation of a concept around its label, in those of the label.
        teacher_forcing: share of the training images that are painted from their labels, not their codes.
        edges, knowledge: what was known of the graph.
        network: of the encoder.
        encoder: from images to what codes are read from.
        together: the painters of concepts that are painted together, see `LayeredDecoder`.
    """

    noise_mean: Tensor
    encoder_error: Tensor
    mechanism_error: Tensor
    fixed_by_data: ClassVar[tuple[str, ...]] = (
        *CausalModel.fixed_by_data,
        "groups",
        "boxes",
        "levels",
    )

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        learnt_graph: dict[str, Any],
        groups: tuple[tuple[int, ...], ...],
        boxes: tuple[Box, ...],
        levels: tuple[tuple[float, ...], ...],
        label_values: LabelValues,
        label_std: float,
        teacher_forcing: float,
        edges: Edges | None,
        knowledge: Knowledge,
        network: Network,
        encoder: nn.Module,
        together: Painters = SHARING,
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            concept_names=concept_names,
            label_mean=label_mean,
            label_scale=label_scale,
            learnt_graph=learnt_graph,
            label_values=label_values,
        )
        self.groups = groups
        self.boxes = boxes
        self.levels = levels
        self.label_std = label_std
        self.teacher_forcing = teacher_forcing
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.encoder = encoder
        self.decoder = LayeredDecoder(
            list(groups), image_shape=image_shape, boxes=list(boxes), together=together
        )
        self.labels = LabelBuffer(len(concept_names))
        self.causes = {
            i: [concept_names.index(cause) for cause in self.start.parents(name)]
            for i, name in enumerate(concept_names)
            if self.start.parents(name)
        }
        # A model that was saved before there were levels says nothing of them.
        few = {i: levels[i] for i in self.causes if levels and levels[i]}
        self.few = tuple(few)
        self.mechanisms = nn.ModuleDict(
            {
                str(i): perceptron([len(causes) * (1 + 2 * FREQUENCIES), 128, 128, outputs])
                for i, causes in self.causes.items()
                for outputs in [len(few[i]) - 1 if i in few else 1]
            }
        )
        self.noise = nn.ModuleDict(
            {
                str(i): CategoricalMechanism(
                    ((torch.tensor(few[i]) - self.mean[i]) / self.scale[i]).tolist()
                )
                if i in few
                else GaussianMixture(least=label_std)
                for i in self.causes
            }
        )

        # A mechanism and its noise share a constant, which only the mean of noise tells.
        self.register_buffer("noise_mean", torch.zeros(len(concept_names)))
        # Mean squares, kept while training: how far labels are from what was read, and from what causes say.
        self.register_buffer("encoder_error", torch.ones(len(concept_names)))
        self.register_buffer("mechanism_error", torch.ones(len(concept_names)))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return cls._decided_by(dataset, options)[0]

    @classmethod
    def _decided_by(
        cls, dataset: Dataset, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Tensor]:
        """The arguments that the data set decides, and the region of each group."""
        fixed = super().data_arguments(dataset, options)
        graph = Graph.from_json(fixed["learnt_graph"])
        groups, regions = learn_regions(dataset, graph)
        boxes = tuple(box_around(region) for region in regions)
        levels = effect_levels(dataset, graph)
        return fixed | {"groups": groups, "boxes": boxes, "levels": levels}, regions

    @classmethod
    def build(cls, dataset: Dataset, options: Mapping[str, Any]) -> Self:
        cls.check_options(options)
        fixed, regions = cls._decided_by(dataset, options)
        model = super().build(dataset, fixed | dict(options))
        model.decoder.regions.copy_(regions)
        return model

    def initialise_from(self, dataset: Dataset) -> None:
        with torch.no_grad():
            self.decoder.background.copy_(median_image_logits(dataset))
            self.labels.fill(self.standardise(torch.from_numpy(complete_labels(dataset))))

    @abstractmethod
    def codes(self, x: Tensor) -> Tensor:
        """Standardised concepts (n, k) as they are read from images."""

    def mechanism(self, i: int, z: Tensor) -> Tensor:
        """What a concept's causes say that it is on average, (n,)."""
        f, noise = self._of_causes(i, z), self.noise[str(i)]
        return (
            noise.mean(f)
            if isinstance(noise, CategoricalMechanism)
            else f[:, 0] + self.noise_mean[i]
        )

    def _of_causes(self, i: int, z: Tensor) -> Tensor:
        """$f_i$ of a concept's causes: (n, 1) but for a constant, which the likelihood leaves to the
        noise's density, or what `CategoricalMechanism` takes."""
        f: Tensor = self.mechanisms[str(i)](fourier_features(z[:, self.causes[i]], FREQUENCIES))
        return f

    def _log_likelihood(self, i: int, u: Tensor) -> Tensor:
        """Of the labels (n,) of an effect, given those of its causes."""
        f, noise = self._of_causes(i, u), self.noise[str(i)]
        if isinstance(noise, CategoricalMechanism):
            return noise.log_probability(u[:, i], f)
        return cast(GaussianMixture, noise).log_density(u[:, i] - f[:, 0])

    def labels_to_paint(self, u: Tensor, labelled: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 1) which images are painted from their labels, and those labels (n, k), with noise.

        Arguments:
            u: (n, k) standardised labels.
            labelled: (n,) True where an image carries all of them.
        """
        chosen = torch.rand(len(u), 1, device=u.device) < self.teacher_forcing
        return labelled[:, None] & chosen, u + self.label_std * torch.randn_like(u)

    def mechanism_terms(self, u: Tensor, labelled: Tensor) -> dict[str, Tensor]:
        r"""$-\sum_i \log p_i(u_i - f_i(u_{pa(i)}))$ of labels, (n,), with a density $p_i$ learnt for each
        mechanism's noise, and $-\log p_i(u_i | u_{pa(i)})$ where an effect has few values; nothing where
        there are no mechanisms."""
        if not self.causes:
            return {}
        unlikely = [-self._log_likelihood(i, u) for i in self.causes]
        return {"mechanisms": torch.stack(unlikely).sum(0) * labelled}

    def abduct(self, x: Tensor) -> Tensor:
        """Codes (n, k), and a number for each effect of few values: where between the quantiles that its
        value leaves open. Nothing in an image tells it, so it is drawn, once and for all of this image."""
        return torch.cat([self.settled(x), chances(x, len(self.few))], dim=1)

    def settled(self, x: Tensor) -> Tensor:
        """Codes (n, k) as they are painted: what was read, once causes have had their say."""
        return self.merge(self.codes(x))

    def merge(self, z: Tensor) -> Tensor:
        """Codes (n, k) once every effect is the mean of what was read and what its causes say, each
        weighted by its precision.

        Pixels round: the ends of a shadow are seen to half a pixel, while its causes say exactly
        where they are. An effect with noise of its own keeps what was read.
        """
        merged = list(z.unbind(1))
        for i in map(self.concept_names.index, self.start.order):
            if i in self.causes:
                said = self.mechanism(i, torch.stack(merged, dim=1))
                share = self.encoder_error[i] / (self.encoder_error[i] + self.mechanism_error[i])
                merged[i] = torch.lerp(merged[i], said, share)
        return torch.stack(merged, dim=1)

    def noise_of(self, z: Tensor) -> Tensor:
        """What causes leave unexplained of codes, (n, k): $n_i = z_i - f_i(z_{pa(i)})$; a root is its own."""
        own = list(z.unbind(1))
        for i in self.causes:
            own[i] = z[:, i] - self.mechanism(i, z)
        return torch.stack(own, dim=1)

    def caused_by(self, noise: Tensor) -> Tensor:
        """The codes (n, k) that follow from what is each concept's own: the inverse of `noise_of`."""
        z = list(noise.unbind(1))
        for i in map(self.concept_names.index, self.start.order):
            if i in self.causes:
                z[i] = noise[:, i] + self.mechanism(i, torch.stack(z, dim=1))
        return torch.stack(z, dim=1)

    @torch.no_grad()
    def note_errors(self, z: Tensor, u: Tensor, labelled: Tensor) -> None:
        """Running means of both errors and of noise, over the images that carry all labels."""
        if not labelled.any():
            return
        z, u = z[labelled], u[labelled]
        for i in self.causes.keys() - set(self.few):
            self.noise_mean[i] += ERROR_PACE * (u[:, i] - self.mechanism(i, u)).mean()
        merged = self.merge(z)
        self.encoder_error.lerp_((z - u).square().mean(0), ERROR_PACE)
        for i in self.causes:
            missed = (self.mechanism(i, merged) - u[:, i]).square().mean()
            self.mechanism_error[i].lerp_(missed, ERROR_PACE)

    def prior(self, n: int) -> Tensor:
        """Labels of training images, which bring causes, effects and their noise along."""
        u = self.labels.draw(n)
        chance = torch.rand(n, len(self.few), device=u.device)
        return torch.cat([u + self.label_std * torch.randn_like(u), chance], dim=1)

    def values(self, latents: Tensor) -> Tensor:
        return latents[:, : len(self.concept_names)]

    def move(self, latents: Tensor, moved: Mapping[int, Tensor]) -> Tensor:
        """Effects keep the noise they had: $z_i' = f_i(z_{pa}') + (z_i - f_i(z_{pa}))$, or the quantile
        where they have few values."""
        now = list(latents.unbind(1))
        for i, value in moved.items():
            now[i] = value
        for i in self.affected_by(moved):
            now[i] = self._carried(i, latents, torch.stack(now, dim=1))
        return torch.stack(now, dim=1)

    def _carried(self, i: int, before: Tensor, now: Tensor) -> Tensor:
        """An effect (n,) with what was its own before, and the causes it has now."""
        noise = self.noise[str(i)]
        if not isinstance(noise, CategoricalMechanism):
            return before[:, i] + (self.mechanism(i, now) - self.mechanism(i, before))
        chance = before[:, len(self.concept_names) + self.few.index(i)]
        return noise.carried(
            before[:, i], self._of_causes(i, before), self._of_causes(i, now), chance
        )

    def paint(self, latents: Tensor) -> Tensor:
        image: Tensor = self.decoder(latents)
        return image
