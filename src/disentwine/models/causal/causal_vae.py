"""CausalVAE, and the base class of models with a linear SCM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NO_KNOWLEDGE, Knowledge
from disentwine.causal.discovery import Discovery
from disentwine.causal.graph import Graph
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive, Share
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.causal.base import CausalModel, Edges, Latents
from disentwine.nn.concept_layers import (
    LabelledEncoder,
    LinearSCM,
    MaskLayer,
    acyclicity,
    drop_labels,
)
from disentwine.nn.encoders import DiagonalGaussian, ImageShape, Likelihood, Network, PixelDecoder


@dataclass(frozen=True)
class GraphLossWeights:
    r"""Weights of the loss terms of A, by the names of the terms.

    Arguments:
        acyclicity: weight of H(A) (CausalVAE eq. 13, CausalWAE eq. 3).
        l_u: weight of $\|u - A^T u\|^2$, which fits A to the labels (CausalVAE eq. 11, CausalWAE eq. 2).
        l_m: weight of $\|z - g(A^T z)\|^2$, which fits the mask layer to the latents (CausalVAE eq. 12,
            CausalWAE eq. 4).
    """

    acyclicity: NonNegative = 1.0
    l_u: NonNegative = 1.0
    l_m: NonNegative = 1.0


ALL_ONE = GraphLossWeights()


class LinearCausalModel(CausalModel[Latents]):
    r"""Causal model with d latents per concept, $z = A^T z + \epsilon$, with a mask layer.

    Subclasses create both layers.

    Attributes:
        dimensions: d.
        scm: the causal layer with A.
    """

    dimensions: int
    scm: LinearSCM

    @property
    def graph(self) -> Graph:
        """The causal graph over the concepts, with the current A as weights."""
        weights = self.scm.A.detach().double().cpu().numpy()
        return Graph(self.concept_names, weights, self.initial_graph.confidence)

    def log_scalars(self) -> dict[str, float]:
        """The current entries of A, one for each edge."""
        return self.scm.named_weights(self.concept_names)

    def by_concept(self, flat: Tensor) -> Tensor:
        """Reshape (n, k d) to (n, k, d)."""
        return flat.view(len(flat), -1, self.dimensions)

    def graph_terms(
        self, z: Tensor, u: Tensor, known: Tensor, *, mask: MaskLayer
    ) -> dict[str, Tensor]:
        r"""$H(A)$, $l_u = \|u - A^T u\|^2$ and $l_m = \sum_i \|z_i - g_i(A_i \circ z)\|^2$.

        Root concepts and labels whose causes have missing labels are left out. Labels are standardised,
        so $A^T u$ needs no map to their range.

        References: CausalVAE, M. Yang et al., 2021, eqs 11 to 13; Causal Representation Learning via WAE,
        Y. Noh, H. Lee and S. Jung, 2022, eqs 2 to 4.

        Arguments:
            z: (n, k, d).
            u: (n, k) standardised labels.
            known: (n, k) 1 where a label is known, 0 elsewhere.
            mask: the mask layer with $g_i$.
        """
        A, caused = self.scm.A, self.scm.edges.any(dim=0)
        complete = known * ((1 - known) @ self.scm.edges.to(known) == 0)
        return {
            "acyclicity": acyclicity(A),
            "l_u": ((u - u @ A) * complete)[:, caused].square().sum(1),
            "l_m": (z - mask(z, A))[:, caused].square().sum((1, 2)),
        }


class CausalLatents(NamedTuple):
    r"""(n, k, d) each: exogenous $\epsilon$, endogenous $z = C \epsilon$, and $\hat z$, the output of the
    mask layer."""

    epsilon: Tensor
    z: Tensor
    z_hat: Tensor


class CausalVAE(LinearCausalModel[CausalLatents]):
    r"""$\epsilon = h(x, u) + \zeta$, $z = (I - A^T)^{-1} \epsilon$ (eq. 1),
    $\hat z_i = g_i(A_i \circ z) + \epsilon_i$ (eq. 2), $x = f(\hat z) + \xi$ (eq. 5); minimise
    $-\mathrm{ELBO} + \alpha H(A) + \beta l_u + \gamma l_m$ (eq. 14).

    Labels are dropped from the input of the encoder for a part of the training images, so that none are
    needed after training. Images without labels are used in training, too.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        image_shape, concept_spec, graph: `for_data` reads them from the data set; the graph is learnt
            from its training labels.
        dimensions: d, latents per concept.
        graph_loss: weights of H(A), $l_u$ and $l_m$: $\alpha$, $\beta$ and $\gamma$.
        label_std: $\lambda_2$ of the prior $p(z_i|u_i) = \mathcal{N}(u_i, \lambda_2^2)$ (eq. 7),
            1 in the paper; with smaller values, concepts follow the labels more closely.
        label_dropout: share of training images whose labels are hidden from the encoder.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        discovery: method of causal discovery before training: "independence" of exogenous variables, or
            the paper's "least-squares" with an augmented Lagrangian, which is often wrong if labels are
            determined by other labels.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> model = CausalVAE.for_data(pendulum)
    >>> model.do(pendulum.images[0], light_angle=60).shape
    (32, 32, 3)
    """

    not_in_weights = ("graph_loss.acyclicity", "graph_loss.l_u", "graph_loss.l_m")

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        graph: Graph,
        *,
        dimensions: Count = 4,
        graph_loss: GraphLossWeights = ALL_ONE,
        label_std: Positive = 1.0,
        label_dropout: Share = 0.5,
        edges: Edges | None = None,
        knowledge: Knowledge = NO_KNOWLEDGE,
        discovery: Discovery = "independence",
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(image_shape, concept_spec, graph)
        self.dimensions = dimensions
        self.graph_loss = graph_loss
        self.label_std = label_std
        self.label_dropout = label_dropout
        self.edges, self.knowledge, self.discovery = edges, knowledge, discovery
        self.network = network
        self.likelihood = likelihood
        k = len(concept_spec.concepts)
        latent = k * dimensions
        self.h = LabelledEncoder(image_shape, labels=k, latent=latent, network=network)
        self.scm = LinearSCM(torch.tensor(graph.weights, dtype=torch.float32))
        self.mask = MaskLayer(self.scm.edges, dimensions=dimensions)
        self.f = PixelDecoder(latent, image_shape, network=network, likelihood=likelihood)

    for_data = ForData(__init__)

    def posterior(
        self, x: Tensor, u: Tensor | None = None, given: Tensor | None = None
    ) -> DiagonalGaussian:
        r"""$q(\epsilon|x, u)$, flat (n, k d); labels that are not given are ignored."""
        q: DiagonalGaussian = self.h(x, u, given)
        return q

    def latents(self, epsilon: Tensor) -> CausalLatents:
        """Apply the causal layer and the mask layer to flat exogenous variables."""
        epsilon = self.by_concept(epsilon)
        z = self.scm(epsilon)
        return CausalLatents(epsilon, z, self.mask(z, self.scm.A) + epsilon)

    def loss(self, batch: Batch) -> Losses:
        """The terms of eq. 14 in nats; squared distances for $l_u$ and $l_m$."""
        u, known = self.labels_of(batch)
        q = self.posterior(batch.x, u, drop_labels(known, self.label_dropout))
        latents = self.latents(q.sample())
        terms = {
            "reconstruction": -self.f.log_likelihood(batch.x, latents.z_hat.flatten(1)),
            "kl_epsilon": kl_to_standard_normal(q.mean, q.log_variance).sum(1),
            "kl_z": self._kl_from_labels(q, self.scm.C, u, known),
            **self.graph_terms(latents.z, u, known, mask=self.mask),
        }
        return Losses(terms, asdict(self.graph_loss))

    def _kl_from_labels(self, q: DiagonalGaussian, C: Tensor, u: Tensor, known: Tensor) -> Tensor:
        r"""$D_{KL}(q(z|x,u) \,\|\, \prod_i \mathcal{N}(u_i, \lambda_2^2))$ of z = C epsilon, for known
        labels.

        The covariance of z is $C \Sigma C^T$ with $\det C = 1$, since A is acyclic; if labels of an image
        are missing, the determinant is that of the block of the known ones.
        """
        lambda_2 = self.label_std
        log_variance = self.by_concept(q.log_variance)
        mean = self.scm(self.by_concept(q.mean))
        variance = torch.einsum("ij,njd->nid", C.square(), log_variance.exp())
        distance = (mean - u[..., None]).square()
        spread = (variance + distance) / lambda_2**2 - 1
        if (known == known[:, :1]).all():
            each = 0.5 * (spread - log_variance) + log(lambda_2)
            kl: Tensor = (each * known[..., None]).sum((1, 2))
            return kl
        covariance = torch.einsum("ij,njd,kj->ndik", C, log_variance.exp(), C)
        pairs = (known[:, :, None] * known[:, None, :])[:, None]
        block = covariance * pairs + torch.diag_embed(1 - known)[:, None]
        each = 0.5 * spread + log(lambda_2)
        partial_kl: Tensor = (each * known[..., None]).sum((1, 2)) - 0.5 * torch.logdet(block).sum(
            1
        )
        return partial_kl

    def abduct(self, x: Tensor) -> CausalLatents:
        return self.latents(self.posterior(x).mean)

    def prior(self, n: int) -> CausalLatents:
        k = len(self.concept_names) * self.dimensions
        return self.latents(torch.randn(n, k, device=self.mean.device, dtype=self.mean.dtype))

    def values(self, latents: CausalLatents) -> Tensor:
        """Mean of each concept's latents z, which the prior (eq. 7) ties to the labels."""
        return latents.z.mean(-1)

    def propagate(
        self, latents: CausalLatents, interventions: Mapping[int, Tensor]
    ) -> CausalLatents:
        """Set concepts at the mask layer's input and output, then recompute descendants in causal order.

        The d latents of a concept are shifted by the same amount, so setting a concept to its old value
        changes nothing. Non-descendants are unchanged, bit for bit.
        """
        A = self.scm.A
        z, z_hat = list(latents.z.unbind(1)), list(latents.z_hat.unbind(1))
        for i, value in interventions.items():
            change = (value - latents.z[:, i].mean(-1))[:, None]
            z[i], z_hat[i] = z[i] + change, z_hat[i] + change
        for i in self.affected_by(interventions):
            now = torch.stack(z, dim=1)
            z[i] = torch.einsum("j,njd->nd", A[:, i], now) + latents.epsilon[:, i]
            z_hat[i] = self.mask.effect(i, now, A) + latents.epsilon[:, i]
        return CausalLatents(latents.epsilon, torch.stack(z, dim=1), torch.stack(z_hat, dim=1))

    def decode_latents(self, latents: CausalLatents) -> Tensor:
        image: Tensor = self.f(latents.z_hat.flatten(1))
        return image
