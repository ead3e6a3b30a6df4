"""CausalGAN: a causal controller, a generator, and critics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NO_KNOWLEDGE, Knowledge
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive
from disentwine.losses.adversarial import discriminator_loss, lazy_gradient_penalty
from disentwine.losses.quantile import quantile_loss
from disentwine.models.causal.base import CausalModel, Edges
from disentwine.models.causal.layered_base import median_image_logits
from disentwine.nn.encoders import DECODERS, ENCODERS, ImageShape, Network
from disentwine.nn.layered_decoder import fourier_features
from disentwine.nn.mechanisms import CausalController

FEATURES = 128

MIN_LABEL_STD = 0.1
"""Lower bound on the labelers' standard deviation, in units of that of the label. With a smaller one, the
labelers would outweigh the discriminator."""


class CausalGANLatents(NamedTuple):
    """Standardised concepts (n, k), and noise (n, d) for all other variation."""

    concepts: Tensor
    noise: Tensor


class CriticOutputs(NamedTuple):
    """Logit (n,) of an image being real, and labels (n, k) predicted by both labelers."""

    logit: Tensor
    labels: Tensor
    anti_labels: Tensor


class Critics(nn.Module):
    """Discriminator, labeler and anti-labeler with shared features, and an encoder."""

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
        latents: Tensor = self.encoder(x)
        return CausalGANLatents(latents[:, :k], latents[:, k:])

    def label_cost(self, labels: Tensor, predicted: Tensor) -> Tensor:
        """-log L of labels (n, k) given the labeler's output, (n, k) nats."""
        return _cost(labels, predicted, self.label_scale)

    def anti_label_cost(self, labels: Tensor, predicted: Tensor) -> Tensor:
        """-log A of labels (n, k) given the anti-labeler's output, (n, k) nats."""
        return _cost(labels, predicted, self.anti_label_scale)


def _cost(labels: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    scale = F.softplus(scale) + MIN_LABEL_STD
    return 0.5 * ((labels - mean) / scale).square() + scale.log()


FREQUENCIES = 4


class CausalGAN(CausalModel[CausalGANLatents]):
    r"""Labels $l_i = f_i(l_{pa(i)}, n_i)$ from a causal controller, images $x = G(l, z)$, and a game:
    a discriminator D separates real from generated images, a labeler L predicts labels of real images, an
    anti-labeler A those of generated ones, and G minimises
    $\log \frac{1 - D(G)}{D(G)} - \log L(l|G) + \log A(l|G)$. Its optimum generates the images of all
    labels, conditionally and under interventions (theorems 1 and 2).

    *As in the paper*: the controller follows the graph, which is given or learnt; labeler and
    anti-labeler are trained on real and generated images and have opposite signs in G's loss.
    *Differences*: labels are real numbers, so the labelers' likelihoods are Gaussian, not Bernoulli. The
    discriminator has a gradient penalty and shares features with the labelers, which is faster. The
    controller regresses each label on its causes and learns quantiles of the residuals, where the paper
    trains a Wasserstein GAN on labels. The noise of an image can therefore be inferred, as
    counterfactuals require. In training, labels are taken from the batch instead of the controller.
    *Additions*: as a GAN has no encoder, one is trained on labels of real images, on noise of
    generated images, and on the reconstruction of real images by G. These losses do not train G.

    Reference: CausalGAN: Learning Causal Implicit Generative Models with Adversarial Training,
    M. Kocaoglu, C. Snyder, A. Dimakis and S. Vishwanath, 2017.

    Arguments:
        image_shape, concept_spec, graph: `for_data` reads them from the data set.
        noise: d, number of latents for all variation beside the labels.
        label_weight: weight of the labeler and the anti-labeler in G's loss.
        slope_weight: weight of the gradient penalty of the discriminator at real images.
        reconstruction_weight: weight of the squared error, summed over pixels, in the encoder's loss.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_learning_rate: learning rate of the critics.

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
        concept_spec: ConceptSpec,
        graph: Graph,
        *,
        noise: Count = 8,
        label_weight: NonNegative = 1.0,
        slope_weight: NonNegative = 1.0,
        reconstruction_weight: NonNegative = 0.01,
        edges: Edges | None = None,
        knowledge: Knowledge = NO_KNOWLEDGE,
        network: Network = "compact",
        discriminator_learning_rate: Positive = 2e-3,
    ) -> None:
        super().__init__(image_shape, concept_spec, graph)
        self.noise = noise
        self.label_weight, self.slope_weight = label_weight, slope_weight
        self.reconstruction_weight = reconstruction_weight
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.discriminator_learning_rate = discriminator_learning_rate
        k, (height, width, channels) = len(graph.names), image_shape
        index = graph.names.index
        self.controller = CausalController(
            [[index(cause) for cause in graph.parents(name)] for name in graph.names],
            order=[index(name) for name in graph.order],
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
        """Losses of the generator and of the controller, which share no parameters."""
        u, known = self.labels_of(batch)
        latents = self._training_latents(u, known)
        outputs = self.discriminator(self.decode_latents(latents))
        residuals = self.controller.noise(u)
        labelled = known.all(dim=1)
        critics, concepts = self.discriminator, latents.concepts
        terms = {
            "generator": -outputs.logit,
            "labeler": critics.label_cost(concepts, outputs.labels).sum(1),
            "anti_labeler": critics.anti_label_cost(concepts, outputs.anti_labels).sum(1),
            "mechanisms": 0.5 * (residuals.square().sum(1) * labelled),
            "noise": quantile_loss(residuals, self.controller.quantiles).sum(1) * labelled,
        }
        weights = {"labeler": self.label_weight, "anti_labeler": -self.label_weight}
        return Losses(terms, weights)

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Losses of the critics."""
        u, known = self.labels_of(batch)
        latents = self._training_latents(u, known)
        generated, critics = self.decode_latents(latents), self.discriminator
        real, fake = critics(batch.x), critics(generated)
        latents_of_real, latents_of_fake = critics.encode(batch.x), critics.encode(generated)
        anti_label_cost = critics.anti_label_cost(latents.concepts, fake.anti_labels)
        terms = {
            "discriminator": discriminator_loss(real.logit, fake.logit),
            "labeler": (critics.label_cost(u, real.labels) * known).sum(1),
            "anti_labeler": anti_label_cost.sum(1),
            "concepts": 0.5
            * ((latents_of_real.concepts - u) * known / MIN_LABEL_STD).square().sum(1),
            "noise": (latents_of_fake.noise - latents.noise).square().mean(1),
            "reconstruction": (batch.x - self.decode_latents(latents_of_real))
            .square()
            .flatten(1)
            .sum(1),
            "slope": lazy_gradient_penalty(lambda x: critics(x).logit, batch.x, step=batch.step),
        }
        weights = {"reconstruction": self.reconstruction_weight, "slope": self.slope_weight}
        return Losses(terms, weights)

    def _training_latents(self, u: Tensor, known: Tensor) -> CausalGANLatents:
        """Labels of the batch, or from the controller if any is missing; noise from the prior."""
        sampled = self.prior(len(u))
        complete = known.all(dim=1, keepdim=True)
        return sampled._replace(concepts=torch.where(complete, u, sampled.concepts))

    def abduct(self, x: Tensor) -> CausalGANLatents:
        return self.discriminator.encode(x)

    def prior(self, n: int) -> CausalGANLatents:
        noise = torch.randn(n, self.noise, device=self.mean.device, dtype=self.mean.dtype)
        return CausalGANLatents(self.controller.sample(n), noise)

    def values(self, latents: CausalGANLatents) -> Tensor:
        return latents.concepts

    def propagate(
        self, latents: CausalGANLatents, interventions: Mapping[int, Tensor]
    ) -> CausalGANLatents:
        """Descendants are recomputed by the controller's mechanisms and keep their noise."""
        return CausalGANLatents(
            self.controller.intervene(latents.concepts, interventions), latents.noise
        )

    def decode_latents(self, latents: CausalGANLatents) -> Tensor:
        features = fourier_features(latents.concepts, FREQUENCIES)
        logits: Tensor = self.generator(torch.cat([features, latents.noise], dim=1))
        return (self.background + logits).sigmoid()
