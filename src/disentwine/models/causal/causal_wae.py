"""CausalWAE: a Wasserstein autoencoder with a causal layer over labelled concepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec, complete_labels
from disentwine.causal.constraints import NOTHING, Knowledge
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
    hide_rows,
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

    H is the Hilbert-Schmidt independence criterion: the information of labels reaches the image through
    $g_1$ and the graph, all other information through $\epsilon$. $g_1$ and the mask layer $g_2$ have one
    small network a concept; $g_3$ has leaky rectifiers, and its logits are added to those of the median
    image. Labels that are not given are predicted from the image: always after training, and for a part
    of the images during training.

    In the formula a root concept is decoded through its effects only, since $g_1(u_i)$ does not pass the
    mask layer. Here it is decoded itself as well, unless `decode_roots` is off. A concept without causes
    and effects always is, since it reaches the image in no other way.

    Reference: Causal Representation Learning via WAE, Y. Noh, H. Lee and S. Jung, 2022.

    Arguments:
        image_shape, concept_spec, graph: `for_data` reads them from the data set; the graph is learnt
            from its training labels.
        divergence: D, "mmd", or "gan" with a discriminator of latents.
        dimensions: d, latents a concept.
        lambda_1: weight of D beside squared errors summed over pixels.
        lambda_2: weight of H.
        lambda_u: weight of the squared error of labels that are predicted from images.
        graph_loss: weights of $\|u - A^T u\|^2$ (eq. 2), of the acyclicity of A (eq. 3) and of
            $\|z_1 - g_2(A^T z_1)\|^2$ (eq. 4).
        label_dropout: share of training images whose labels are predicted although they are known.
        decode_roots: decode root concepts from their own latents as well; off is the paper's formula.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_units: of each of the discriminator's four hidden layers.
        discriminator_learning_rate: of the discriminator's Adam.

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
        knowledge: Knowledge = NOTHING,
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
        # Labels pass many layers: torch's default initialisation would make their effect faint.
        for layer in (*self.g_2.modules(), *self.g_3):
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        self.labels = LabelBuffer(k)
        caused, causing = self.scm.edges.any(dim=0), self.scm.edges.any(dim=1)
        self.caused = caused.tolist()
        self.shown = (~caused if decode_roots else ~(caused | causing)).tolist()
        self.discriminator: nn.Module | None = None
        if divergence == "gan":
            self.discriminator = latent_discriminator(latent, discriminator_units)
            self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def initialise_from(self, dataset: Dataset) -> None:
        with torch.no_grad():
            # With squared errors, a grey initial image leaves no gradient for thin lines.
            self.g_3[-1].background.copy_(median_image_logits(dataset))  # type: ignore[operator]
        complete = complete_labels(dataset)
        if len(complete):
            self.labels.fill(self.standardise(torch.from_numpy(complete)))

    def latents(self, epsilon: Tensor, u: Tensor) -> WAELatents:
        """Apply the causal layer and the mask layer to flat exogenous variables and concepts (n, k)."""
        epsilon = self.by_concept(epsilon)
        codes = self.g_1(u)
        z_1 = self.scm(epsilon) + codes
        shown = codes.new_tensor(self.shown)[:, None] * codes
        return WAELatents(epsilon, u, z_1, self.g_2(z_1, self.scm.A) + epsilon + shown)

    def _read(self, batch: Batch) -> LabelPrediction:
        """$f(x, u)$, with some of the labels hidden."""
        u, known = self.labels_of(batch)
        found: LabelPrediction = self.f(batch.x, u, hide_rows(known, self.label_dropout))
        return found

    def loss(self, batch: Batch) -> Losses:
        """Every term of eq. 8 and of eqs 2 to 4, and the error of predicted labels."""
        u, known = self.labels_of(batch)
        found = self._read(batch)
        latents = self.latents(found.code, found.u)
        difference = batch.x - self.g_3(latents.z_2.flatten(1))
        terms = {
            "reconstruction": difference.square().flatten(1).sum(1),
            "divergence": divergence_from_prior(found.code, self.discriminator),
            "independence": hsic(found.code, torch.where(known > 0, u, found.u.detach())),
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
            {"cross_entropy": prior_discriminator_loss(self._read(batch).code, self.discriminator)}
        )

    @torch.no_grad()
    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        r"""$f(x, u)$ of images and their labels in their own units, (n, k d)."""
        code: Tensor = self.f(x, self.standardise(u), u.isfinite()).code
        return code

    @torch.no_grad()
    def injectivity(self, x: Tensor) -> Tensor:
        """The smallest singular value (n,) of $g_3$'s Jacobian at the latents of each image."""
        return smallest_singular_values(self.g_3, self.abduct(x).z_2.flatten(1))

    def abduct(self, x: Tensor) -> WAELatents:
        found = self.f(x)
        return self.latents(found.code, found.u)

    def prior(self, n: int) -> WAELatents:
        r"""Samples of $P_\epsilon \otimes P_U$, with labels of training images."""
        u = self.labels.sample(n)
        latent = u.shape[1] * self.dimensions
        return self.latents(torch.randn(n, latent, device=u.device, dtype=u.dtype), u)

    def values(self, latents: WAELatents) -> Tensor:
        return latents.u

    def move(self, latents: WAELatents, moved: Mapping[int, Tensor]) -> WAELatents:
        r"""Set concepts at the mask layer's input and output, then recompute descendants in causal order.

        The input of a concept changes by the change of its $g_1$. Its output changes likewise only where
        $g_1$ or the mask layer leads there: a root has $\epsilon$ alone, which labels do not affect.
        Descendants change by the change of the mask layer's output, their values according to eq. 2.
        """
        A = self.scm.A
        u, z_1, z_2 = (list(part.unbind(1)) for part in latents[1:])
        for i, value in moved.items():
            change = self.g_1.code(i, value) - self.g_1.code(i, u[i])
            u[i], z_1[i] = value, z_1[i] + change
            if self.caused[i] or self.shown[i]:
                z_2[i] = z_2[i] + change
        for i in self.affected_by(moved):
            now = torch.stack(z_1, dim=1)
            change = self.g_2.effect(i, now, A) - self.g_2.effect(i, latents.z_1, A)
            u[i] = u[i] + (torch.stack(u, dim=1) - latents.u) @ A[:, i]
            z_1[i], z_2[i] = z_1[i] + change, z_2[i] + change
        return WAELatents(latents.epsilon, *(torch.stack(part, dim=1) for part in (u, z_1, z_2)))

    def decode_latents(self, latents: WAELatents) -> Tensor:
        image: Tensor = self.g_3(latents.z_2.flatten(1))
        return image
