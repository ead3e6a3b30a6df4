"""CausalWAE: a Wasserstein autoencoder with a causal layer over labelled concepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec, complete_labels
from disentwine.causal.constraints import NO_KNOWLEDGE, Knowledge
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive, Share
from disentwine.losses.kernels import hsic
from disentwine.models.causal.base import Edges
from disentwine.models.causal.causal_vae import ALL_ONE, GraphLossWeights, LinearCausalModel
from disentwine.models.causal.layered_base import median_image_logits
from disentwine.models.wae import (
    Divergence,
    discriminator_training,
    divergence_from_prior,
    latent_discriminator,
    prior_discriminator_loss,
)
from disentwine.nn.concept_layers import (
    ConceptEmbedding,
    LabelBuffer,
    LabelPredictingEncoder,
    LabelPrediction,
    LinearSCM,
    MaskLayer,
    drop_labels,
)
from disentwine.nn.encoders import DECODERS, ImageShape, Network
from disentwine.nn.inversion import OverBackground, leaky, smallest_singular_values


class WAELatents(NamedTuple):
    r"""Exogenous $\epsilon$, concepts u (n, k), and latents $z_1$ before and $z_2$ after the mask layer;
    all but u are (n, k, d)."""

    epsilon: Tensor
    u: Tensor
    z_1: Tensor
    z_2: Tensor


class CausalWAE(LinearCausalModel[WAELatents]):
    r"""$\epsilon = f(x, u)$, $z_1 = (I - A^T)^{-1} \epsilon + g_1(u)$, $z_2 = g_2(A^T z_1) + \epsilon$,
    $\hat x = g_3(z_2)$ with an injective $g_3$; minimise $\mathbb{E}\,\|x - \hat x\|^2 + \lambda_1
    D(f_\# P_{XU} \,\|\, \mathcal{N}(0, I)) + \lambda_2 H(f(X, U), U)$ (eq. 8), with A under eqs 2 to 4.

    H is the Hilbert-Schmidt independence criterion: information about labels reaches the image through
    $g_1$ and the graph, all other information through $\epsilon$. $g_1$ and the mask layer $g_2$ have one
    small network per concept. $g_3$ has leaky ReLUs, and its logits are added to those of the median
    image. Labels are predicted from the image after training, and for a part of the images during
    training.

    In the formula a root concept is decoded through its effects only, since $g_1(u_i)$ does not pass the
    mask layer. Here it is also decoded itself, unless `decode_roots` is off. A concept without causes and
    effects is always decoded itself.

    Reference: Causal Representation Learning via WAE, Y. Noh, H. Lee and S. Jung, 2022.

    Arguments:
        image_shape, concept_spec, graph: `for_data` reads them from the data set; the graph is learnt
            from its training labels.
        divergence: D, "mmd", or "gan" with a discriminator of latents.
        dimensions: d, latents per concept.
        lambda_1: weight of D, relative to squared errors summed over pixels.
        lambda_2: weight of H.
        lambda_u: weight of the squared error of predicted labels.
        graph_loss: weights of $\|u - A^T u\|^2$ (eq. 2), of the acyclicity of A (eq. 3) and of
            $\|z_1 - g_2(A^T z_1)\|^2$ (eq. 4).
        label_dropout: share of training images whose labels are hidden from the encoder.
        decode_roots: also decode root concepts from their own latents; False is the paper's formula.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_units: width of the four hidden layers of the discriminator.
        discriminator_learning_rate: learning rate of the discriminator.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> model = CausalWAE.for_data(pendulum)
    >>> model.do(pendulum.images[0], light_angle=60).shape
    (32, 32, 3)
    """

    discriminator_training: DiscriminatorTraining

    not_in_weights = (
        *("lambda_1", "lambda_2", "lambda_u", "discriminator_learning_rate"),
        *("graph_loss.acyclicity", "graph_loss.l_u", "graph_loss.l_m"),
    )

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        graph: Graph,
        *,
        divergence: Divergence = "mmd",
        dimensions: Count = 4,
        lambda_1: NonNegative = 10.0,
        lambda_2: NonNegative = 1000.0,
        lambda_u: NonNegative = 100.0,
        graph_loss: GraphLossWeights = ALL_ONE,
        label_dropout: Share = 0.5,
        decode_roots: bool = True,
        edges: Edges | None = None,
        knowledge: Knowledge = NO_KNOWLEDGE,
        network: Network = "compact",
        discriminator_units: Count = 512,
        discriminator_learning_rate: Positive = 5e-4,
    ) -> None:
        super().__init__(image_shape, concept_spec, graph)
        self.divergence = divergence
        self.dimensions = dimensions
        self.lambda_1, self.lambda_2, self.lambda_u = lambda_1, lambda_2, lambda_u
        self.graph_loss = graph_loss
        self.label_dropout = label_dropout
        self.decode_roots = decode_roots
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        k = len(concept_spec.concepts)
        latent = k * dimensions
        self.f = LabelPredictingEncoder(image_shape, labels=k, latent=latent, network=network)
        self.scm = LinearSCM(torch.tensor(graph.weights, dtype=torch.float32))
        self.g_1 = ConceptEmbedding(k, dimensions=dimensions)
        self.g_2 = MaskLayer(self.scm.edges, dimensions=dimensions)
        over = OverBackground(image_shape)
        self.g_3 = nn.Sequential(*leaky(DECODERS[network](latent, image_shape)), over)
        # With torch's default initialisation, the effect of labels would vanish over the many layers.
        for layer in (*self.g_2.modules(), *self.g_3):
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        self.labels = LabelBuffer(k)
        caused, causing = self.scm.edges.any(dim=0), self.scm.edges.any(dim=1)
        self.caused = caused.tolist()
        self.is_decoded = (~caused if decode_roots else ~(caused | causing)).tolist()
        self.discriminator: nn.Module | None = None
        if divergence == "gan":
            self.discriminator = latent_discriminator(latent, discriminator_units)
            self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def initialise_from(self, dataset: Dataset) -> None:
        with torch.no_grad():
            # With squared errors, thin lines have almost no gradient if the initial image is grey.
            self.g_3[-1].background.copy_(median_image_logits(dataset))  # type: ignore[operator]
        complete = complete_labels(dataset)
        if len(complete):
            self.labels.fill(self.standardise(torch.from_numpy(complete)))

    def latents(self, epsilon: Tensor, u: Tensor) -> WAELatents:
        """Apply the causal layer and the mask layer to flat exogenous variables and concepts (n, k)."""
        epsilon = self.by_concept(epsilon)
        embeddings = self.g_1(u)
        z_1 = self.scm(epsilon) + embeddings
        decoded = embeddings.new_tensor(self.is_decoded)[:, None] * embeddings
        return WAELatents(epsilon, u, z_1, self.g_2(z_1, self.scm.A) + epsilon + decoded)

    def _predict_labels(self, batch: Batch) -> LabelPrediction:
        """$f(x, u)$ with label dropout."""
        u, known = self.labels_of(batch)
        found: LabelPrediction = self.f(batch.x, u, drop_labels(known, self.label_dropout))
        return found

    def loss(self, batch: Batch) -> Losses:
        """The terms of eq. 8 and of eqs 2 to 4, and the error of predicted labels."""
        u, known = self.labels_of(batch)
        found = self._predict_labels(batch)
        latents = self.latents(found.epsilon, found.u)
        difference = batch.x - self.g_3(latents.z_2.flatten(1))
        terms = {
            "reconstruction": difference.square().flatten(1).sum(1),
            "divergence": divergence_from_prior(found.epsilon, self.discriminator),
            "independence": hsic(found.epsilon, torch.where(known > 0, u, found.u.detach())),
            "labels": ((found.predicted - u) * known).square().sum(1),
            **self.graph_terms(latents.z_1, u, known, mask=self.g_2),
        }
        weights = {
            "divergence": self.lambda_1,
            "independence": self.lambda_2,
            "labels": self.lambda_u,
            **asdict(self.graph_loss),
        }
        return Losses(terms, weights)

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Cross-entropy of the discriminator between samples of the prior and latents."""
        assert self.discriminator is not None
        return Losses(
            {
                "cross_entropy": prior_discriminator_loss(
                    self._predict_labels(batch).epsilon, self.discriminator
                )
            }
        )

    @torch.no_grad()
    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        r"""$f(x, u)$ (n, k d) of images and labels in their own units."""
        epsilon: Tensor = self.f(x, self.standardise(u), u.isfinite()).epsilon
        return epsilon

    @torch.no_grad()
    def injectivity(self, x: Tensor) -> Tensor:
        """The smallest singular value (n,) of $g_3$'s Jacobian at the latents of each image."""
        return smallest_singular_values(self.g_3, self.abduct(x).z_2.flatten(1))

    def abduct(self, x: Tensor) -> WAELatents:
        found = self.f(x)
        return self.latents(found.epsilon, found.u)

    def prior(self, n: int) -> WAELatents:
        r"""Samples of $P_\epsilon \otimes P_U$, with labels of training images."""
        u = self.labels.sample(n)
        latent = u.shape[1] * self.dimensions
        return self.latents(torch.randn(n, latent, device=u.device, dtype=u.dtype), u)

    def values(self, latents: WAELatents) -> Tensor:
        return latents.u

    def propagate(self, latents: WAELatents, interventions: Mapping[int, Tensor]) -> WAELatents:
        r"""Set concepts at the mask layer's input and output, then recompute descendants in causal order.

        The input of a concept changes by the change of its $g_1$. Its output changes by the same amount
        unless it is $\epsilon$ alone, as for a root with `decode_roots` off. The latents of descendants
        change by the change of the mask layer's output, their values by eq. 2.
        """
        A = self.scm.A
        u, z_1, z_2 = (list(part.unbind(1)) for part in latents[1:])
        for i, value in interventions.items():
            change = self.g_1.embed(i, value) - self.g_1.embed(i, u[i])
            u[i], z_1[i] = value, z_1[i] + change
            if self.caused[i] or self.is_decoded[i]:
                z_2[i] = z_2[i] + change
        for i in self.affected_by(interventions):
            now = torch.stack(z_1, dim=1)
            change = self.g_2.effect(i, now, A) - self.g_2.effect(i, latents.z_1, A)
            u[i] = u[i] + (torch.stack(u, dim=1) - latents.u) @ A[:, i]
            z_1[i], z_2[i] = z_1[i] + change, z_2[i] + change
        return WAELatents(latents.epsilon, *(torch.stack(part, dim=1) for part in (u, z_1, z_2)))

    def decode_latents(self, latents: WAELatents) -> Tensor:
        image: Tensor = self.g_3(latents.z_2.flatten(1))
        return image
