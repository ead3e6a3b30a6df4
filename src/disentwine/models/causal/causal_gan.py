"""CausalGAN; CausalGAN discriminator/labelers/encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.causal.constraints import NOTHING, Knowledge
from disentwine.causal.interventions import LabelValues
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive
from disentwine.losses.adversarial import discriminator_loss, lazy_slope_penalty
from disentwine.losses.quantile import quantile_loss
from disentwine.models.causal.base import CausalModel, Edges
from disentwine.models.causal.layered_base import median_image_logits
from disentwine.nn.encoders import DECODERS, ENCODERS, ImageShape, Network
from disentwine.nn.layered_decoder import fourier_features
from disentwine.nn.mechanisms import CausalController

FEATURES = 128

LEAST_SCALE = 0.1
"""Of the labelers, in standard deviations of a label: surer ones would outweigh the discriminator."""


class CausalGANLatents(NamedTuple):
    """Standardised concepts (n, k), and the noise (n, d) of all else."""

    concepts: Tensor
    noise: Tensor


class CriticOutputs(NamedTuple):
    """What the judges see in images: (n,) true or painted, and labels (n, k), twice."""

    logit: Tensor
    labels: Tensor
    anti_labels: Tensor


class Critics(nn.Module):
    """Discriminator, labeler and anti-labeler on features that they share; and an encoder."""

    def __init__(
        self, image_shape: ImageShape, *, concepts: int, noise: int, network: Network
    ) -> None:
        super().__init__()
        self.sizes = [1, concepts, concepts]
        self.features = ENCODERS[network](image_shape, FEATURES)
        self.heads = nn.Linear(FEATURES, sum(self.sizes))
        self.label_scale = nn.Parameter(torch.zeros(concepts))
        self.anti_label_scale = nn.Parameter(torch.zeros(concepts))
        self.encoder = ENCODERS[network](image_shape, concepts + noise)

    def forward(self, x: Tensor) -> CriticOutputs:
        logit, *labels = self.heads(F.leaky_relu(self.features(x), 0.2)).split(self.sizes, dim=1)
        return CriticOutputs(logit[:, 0], *labels)

    def encode(self, x: Tensor) -> CausalGANLatents:
        k = self.sizes[1]
        code: Tensor = self.encoder(x)
        return CausalGANLatents(code[:, :k], code[:, k:])

    def label_cost(self, labels: Tensor, seen: Tensor) -> Tensor:
        """-log L of labels (n, k) given what the labeler sees, (n, k) nats."""
        return _cost(labels, seen, self.label_scale)

    def anti_label_cost(self, labels: Tensor, seen: Tensor) -> Tensor:
        """-log A of labels (n, k) given what the anti-labeler sees, (n, k) nats."""
        return _cost(labels, seen, self.anti_label_scale)


def _cost(labels: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    scale = F.softplus(scale) + LEAST_SCALE
    return 0.5 * ((labels - mean) / scale).square() + scale.log()


FREQUENCIES = 4


class CausalGAN(CausalModel[CausalGANLatents]):
    r"""Labels $l_i = f_i(l_{pa(i)}, n_i)$ from a causal controller, images $x = G(l, z)$, and a game:
    a discriminator D tells images from painted ones, a labeler L reads labels off true images, an
    anti-labeler A off painted ones, and G minimises $\log \frac{1 - D(G)}{D(G)} - \log L(l|G) + \log A(l|G)$,
    whose optimum paints every label's images, conditionally and under interventions alike (theorems 1 and 2).

    *As the paper has it*: the controller follows the graph, which is given or else learnt; labeler and
    anti-labeler, each trained on its own kind of images, with opposite signs in G's loss.
    *What differs*: labels are real numbers, so the labelers' likelihoods are Gaussian, not Bernoulli; the
    discriminator pays for its slope, and shares features with the labelers, which is quicker. The
    controller regresses each label on its causes and learns the quantiles of the rest, where the paper
    trains a Wasserstein GAN on labels: then the noise of one image can be worked out, as a
    counterfactual needs. While training, labels come from the batch, as a perfect controller would draw them.
    *What is ours*: a GAN has no encoder, so one is trained beside it, on true images' labels, on
    painted images' noise, and on how well G paints true images again. G does not learn from it.

    Reference: CausalGAN: Learning Causal Implicit Generative Models with Adversarial Training,
    M. Kocaoglu, C. Snyder, A. Dimakis and S. Vishwanath, 2017.

    Arguments:
        image_shape, concept_names, label_mean, label_scale, learnt_graph, label_values: `for_data`
            reads them from the data set.
        noise: d, numbers for all that the labels do not tell.
        label_weight: of the labeler and the anti-labeler in G's loss.
        slope_weight: of the penalty that keeps the discriminator flat at true images.
        reconstruction_weight: of the squared error, summed over pixels, in the encoder's loss.
        edges: the true graph, where it is known: (cause, effect) pairs.
        knowledge: what else is known of the graph before it is learnt.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_learning_rate: of the critics' Adam.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> model = CausalGAN.for_data(pendulum)
    >>> model.do(pendulum.images[0], light_angle=60).shape
    (32, 32, 3)
    """

    betas: ClassVar[tuple[float, float]] = (0.5, 0.99)

    not_in_weights = (
        "label_weight",
        "slope_weight",
        "reconstruction_weight",
        "discriminator_learning_rate",
    )

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        learnt_graph: dict[str, Any],
        label_values: LabelValues = (),
        noise: Count = 8,
        label_weight: NonNegative = 1.0,
        slope_weight: NonNegative = 1.0,
        reconstruction_weight: NonNegative = 0.01,
        edges: Edges | None = None,
        knowledge: Knowledge = NOTHING,
        network: Network = "compact",
        discriminator_learning_rate: Positive = 2e-3,
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            concept_names=concept_names,
            label_mean=label_mean,
            label_scale=label_scale,
            learnt_graph=learnt_graph,
            label_values=label_values,
        )
        self.noise = noise
        self.label_weight, self.slope_weight = label_weight, slope_weight
        self.reconstruction_weight = reconstruction_weight
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.discriminator_learning_rate = discriminator_learning_rate
        k, (height, width, channels) = len(concept_names), image_shape
        place = concept_names.index
        self.controller = CausalController(
            [[place(cause) for cause in self.start.parents(name)] for name in concept_names],
            order=[place(name) for name in self.start.order],
        )
        self.generator = DECODERS[network](k * (1 + 2 * FREQUENCIES) + noise, image_shape)
        self.background = nn.Parameter(torch.zeros(channels, height, width))
        self.discriminator = Critics(image_shape, concepts=k, noise=noise, network=network)
        self.discriminator_training = DiscriminatorTraining(discriminator_learning_rate, self.betas)

    for_data = ForData(__init__)

    def initialise_from(self, dataset: Dataset) -> None:
        with torch.no_grad():
            self.background.copy_(median_image_logits(dataset))

    def loss(self, batch: Batch) -> Losses:
        """What the generator and, apart from it, the controller minimise."""
        u, known = self.labels_of(batch)
        latents = self._latents_to_paint(u, known)
        seen = self.discriminator(self.paint(latents))
        unexplained = self.controller.noise(u)
        labelled = known.all(dim=1)
        critics, concepts = self.discriminator, latents.concepts
        terms = {
            "generator": -seen.logit,
            "labeler": critics.label_cost(concepts, seen.labels).sum(1),
            "anti_labeler": critics.anti_label_cost(concepts, seen.anti_labels).sum(1),
            "mechanisms": 0.5 * (unexplained.square().sum(1) * labelled),
            "noise": quantile_loss(unexplained, self.controller.quantiles).sum(1) * labelled,
        }
        weights = {"labeler": self.label_weight, "anti_labeler": -self.label_weight}
        return Losses(terms, weights)

    def discriminator_loss(self, batch: Batch) -> Losses:
        """What the critics minimise."""
        u, known = self.labels_of(batch)
        latents = self._latents_to_paint(u, known)
        painting, critics = self.paint(latents), self.discriminator
        true, painted = critics(batch.x), critics(painting)
        found, refound = critics.encode(batch.x), critics.encode(painting)
        anti_label_cost = critics.anti_label_cost(latents.concepts, painted.anti_labels)
        terms = {
            "discriminator": discriminator_loss(true.logit, painted.logit),
            "labeler": (critics.label_cost(u, true.labels) * known).sum(1),
            "anti_labeler": anti_label_cost.sum(1),
            "concepts": 0.5 * ((found.concepts - u) * known / LEAST_SCALE).square().sum(1),
            "noise": (refound.noise - latents.noise).square().mean(1),
            "reconstruction": (batch.x - self.paint(found)).square().flatten(1).sum(1),
            "slope": lazy_slope_penalty(lambda x: critics(x).logit, batch.x, step=batch.step),
        }
        weights = {"reconstruction": self.reconstruction_weight, "slope": self.slope_weight}
        return Losses(terms, weights)

    def _latents_to_paint(self, u: Tensor, known: Tensor) -> CausalGANLatents:
        """An image's own labels where all are known, else some of the controller's; and fresh noise."""
        drawn = self.prior(len(u))
        complete = known.all(dim=1, keepdim=True)
        return drawn._replace(concepts=torch.where(complete, u, drawn.concepts))

    def abduct(self, x: Tensor) -> CausalGANLatents:
        return self.discriminator.encode(x)

    def prior(self, n: int) -> CausalGANLatents:
        noise = torch.randn(n, self.noise, device=self.mean.device, dtype=self.mean.dtype)
        return CausalGANLatents(self.controller.draw(n), noise)

    def values(self, latents: CausalGANLatents) -> Tensor:
        return latents.concepts

    def move(self, latents: CausalGANLatents, moved: Mapping[int, Tensor]) -> CausalGANLatents:
        """The controller's mechanisms move the effects, which keep the noise they had."""
        return CausalGANLatents(self.controller.move(latents.concepts, moved), latents.noise)

    def paint(self, latents: CausalGANLatents) -> Tensor:
        features = fourier_features(latents.concepts, FREQUENCIES)
        painted: Tensor = self.generator(torch.cat([features, latents.noise], dim=1))
        return (self.background + painted).sigmoid()
