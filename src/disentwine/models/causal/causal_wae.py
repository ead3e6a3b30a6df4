"""CausalWAE: CausalVAE's concepts and causes, learnt as a Wasserstein autoencoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from disentwine.causal.concepts import complete_labels
from disentwine.causal.constraints import NOTHING, Knowledge
from disentwine.causal.interventions import LabelValues
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive, Share
from disentwine.losses.kernels import hsic
from disentwine.models.causal.base import Edges
from disentwine.models.causal.causal_vae import LinearCausalModel
from disentwine.models.causal.layered_base import median_image_logits
from disentwine.models.wae import (
    Divergence,
    discriminator_training,
    divergence_from_prior,
    latent_discriminator,
    prior_discriminator_loss,
)
from disentwine.nn.encoders import DECODERS, ImageShape, Network
from disentwine.nn.inversion import OverBackground, leaky, smallest_singular_values
from disentwine.nn.labels import (
    ConceptEmbedding,
    LabelBuffer,
    LabelPredictingEncoder,
    Reading,
    hide_rows,
)
from disentwine.nn.scm import LinearSCM, MaskLayer


class WAELatents(NamedTuple):
    r"""Exogenous $\epsilon$, concepts u (n, k), and codes $z_1$ before and $z_2$ after the mask layer;
    (n, k, d) but for u."""

    epsilon: Tensor
    u: Tensor
    z_1: Tensor
    z_2: Tensor


class CausalWAE(LinearCausalModel[WAELatents]):
    r"""$\epsilon = f(x, u)$, $z_1 = (I - A^T)^{-1} \epsilon + g_1(u)$, $z_2 = g_2(A^T z_1) + \epsilon$,
    $\hat x = g_3(z_2)$ with an injective $g_3$; minimise $\mathbb{E}\,\|x - \hat x\|^2 + \lambda_1
    D(f_\# P_{XU} \,\|\, \mathcal{N}(0, I)) + \lambda_2 H(f(X, U), U)$ (eq. 8), with A under eqs 2 to 4.

    H is the Hilbert-Schmidt independence criterion: what labels say is to reach the image through $g_1$
    and the graph, what they do not say through $\epsilon$. $g_1$ and the mask layer $g_2$ have one small
    network a concept, $g_3$ has leaky rectifiers and paints over the median image. Labels are read from
    the image where there are none: at all times after the training, and for a share of the images during
    it.

    The formula paints a concept without causes through its effects only: nothing is left of its own
    $g_1(u_i)$ behind the mask layer. Here it is, unless `decode_roots` is off; a concept without causes and
    effects always is painted from it, since no other way leads to the image.

    Reference: Causal Representation Learning via WAE, Y. Noh, H. Lee and S. Jung, 2022.

    Arguments:
        image_shape, concept_names, label_mean, label_scale, learnt_graph, label_values: `for_data`
            reads them from the data set; the graph is learnt from its training labels.
        divergence: D, "mmd" or "gan": a discriminator of codes, which the model plays against.
        dimensions: d, numbers a concept.
        lambda_1: weight of D beside squared errors summed over pixels.
        lambda_2: weight of H.
        lambda_u: weight of the squared error of labels that are read from images.
        gamma_1: weight of $\|u - A^T u\|^2$ (eq. 2).
        gamma_2: weight of the acyclicity of A (eq. 3).
        gamma_3: weight of $\|z_1 - g_2(A^T z_1)\|^2$ (eq. 4).
        label_dropout: share of training images whose labels are read, though there are some.
        decode_roots: paint concepts without causes from their own codes as well; off is the formula as
            it is printed.
        edges: the true graph, where it is known: (cause, effect) pairs.
        knowledge: what else is known of the graph before it is learnt.
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

    not_in_weights = ("lambda_1", "lambda_2", "lambda_u", "discriminator_learning_rate")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        learnt_graph: dict[str, Any],
        label_values: LabelValues = (),
        divergence: Divergence = "mmd",
        dimensions: Count = 4,
        lambda_1: NonNegative = 10.0,
        lambda_2: NonNegative = 1000.0,
        lambda_u: NonNegative = 100.0,
        gamma_1: NonNegative = 1.0,
        gamma_2: NonNegative = 1.0,
        gamma_3: NonNegative = 1.0,
        label_dropout: Share = 0.5,
        decode_roots: bool = True,
        edges: Edges | None = None,
        knowledge: Knowledge = NOTHING,
        network: Network = "compact",
        discriminator_units: Count = 512,
        discriminator_learning_rate: Positive = 5e-4,
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            concept_names=concept_names,
            label_mean=label_mean,
            label_scale=label_scale,
            learnt_graph=learnt_graph,
            label_values=label_values,
        )
        self.divergence = divergence
        self.dimensions = dimensions
        self.lambda_1, self.lambda_2, self.lambda_u = lambda_1, lambda_2, lambda_u
        self.gamma_1, self.gamma_2, self.gamma_3 = gamma_1, gamma_2, gamma_3
        self.label_dropout = label_dropout
        self.decode_roots = decode_roots
        self.edges, self.knowledge = edges, knowledge
        self.network = network
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        k, latent = len(concept_names), len(concept_names) * dimensions
        self.f = LabelPredictingEncoder(image_shape, labels=k, latent=latent, network=network)
        self.scm = LinearSCM(torch.tensor(self.start.weights, dtype=torch.float32))
        self.g_1 = ConceptEmbedding(k, dimensions=dimensions)
        self.g_2 = MaskLayer(self.scm.edges, dimensions=dimensions)
        over = OverBackground(image_shape)
        self.g_3 = nn.Sequential(*leaky(DECODERS[network](latent, image_shape)), over)
        # The way from labels to the image is long: torch's own start would let it begin faint.
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
            # With squared errors, an image that starts grey leaves no gradient for its thin lines.
            self.g_3[-1].background.copy_(median_image_logits(dataset))  # type: ignore[operator]
        complete = complete_labels(dataset)
        if len(complete):
            self.labels.fill(self.standardise(torch.from_numpy(complete)))

    def latents(self, epsilon: Tensor, u: Tensor) -> WAELatents:
        """The causal layer and the mask layer over flat exogenous terms and concepts (n, k)."""
        epsilon = self.by_concept(epsilon)
        codes = self.g_1(u)
        z_1 = self.scm(epsilon) + codes
        shown = codes.new_tensor(self.shown)[:, None] * codes
        return WAELatents(epsilon, u, z_1, self.g_2(z_1, self.scm.A) + epsilon + shown)

    def _read(self, batch: Batch) -> Reading:
        """$f(x, u)$, with some of the labels hidden."""
        u, known = self.labels_of(batch)
        found: Reading = self.f(batch.x, u, hide_rows(known, self.label_dropout))
        return found

    def loss(self, batch: Batch) -> Losses:
        """Every term of eq. 8 and of eqs 2 to 4, and the error of labels that are read."""
        u, known = self.labels_of(batch)
        found = self._read(batch)
        latents = self.latents(found.code, found.u)
        difference = batch.x - self.g_3(latents.z_2.flatten(1))
        terms = {
            "reconstruction": difference.square().flatten(1).sum(1),
            "divergence": divergence_from_prior(found.code, self.discriminator),
            "independence": hsic(found.code, torch.where(known > 0, u, found.u.detach())),
            "labels": ((found.read - u) * known).square().sum(1),
            **self.graph_terms(latents.z_1, u, known, mask=self.g_2),
        }
        weights = {
            "divergence": self.lambda_1,
            "independence": self.lambda_2,
            "labels": self.lambda_u,
            "l_u": self.gamma_1,
            "acyclicity": self.gamma_2,
            "l_m": self.gamma_3,
        }
        return Losses(terms, weights)

    def discriminator_loss(self, batch: Batch) -> Losses:
        """The cross-entropy of telling draws of the prior from codes."""
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
        """The smallest singular value (n,) of $g_3$'s Jacobian at the code of each image."""
        return smallest_singular_values(self.g_3, self.abduct(x).z_2.flatten(1))

    def abduct(self, x: Tensor) -> WAELatents:
        found = self.f(x)
        return self.latents(found.code, found.u)

    def prior(self, n: int) -> WAELatents:
        r"""$P_\epsilon \otimes P_U$, with labels of training images."""
        u = self.labels.draw(n)
        latent = u.shape[1] * self.dimensions
        return self.latents(torch.randn(n, latent, device=u.device, dtype=u.dtype), u)

    def values(self, latents: WAELatents) -> Tensor:
        return latents.u

    def move(self, latents: WAELatents, moved: Mapping[int, Tensor]) -> WAELatents:
        """Set concepts at the mask layer's input and output; what they cause follows, in order.

        A code moves as far as $g_1$ of its concept does; at the output only where $g_1$ or the mask layer
        led there, since what is left of a concept without causes is $\\epsilon$, which labels do not
        move. Effects move as far as the mask layer does, their values as far as eq. 2 says.
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

    def paint(self, latents: WAELatents) -> Tensor:
        image: Tensor = self.g_3(latents.z_2.flatten(1))
        return image
