"""CausalWAE/layered: a Wasserstein autoencoder with nonlinear mechanisms and a layered decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NO_KNOWLEDGE, Knowledge
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive, Probability
from disentwine.losses.kernels import hsic
from disentwine.models.causal.base import Edges
from disentwine.models.causal.layered_base import LayeredModel
from disentwine.models.causal.pixel_attribution import Composition
from disentwine.models.wae import (
    Divergence,
    discriminator_training,
    divergence_from_prior,
    latent_discriminator,
    prior_discriminator_loss,
)
from disentwine.nn.encoders import ENCODERS, ImageShape, Network
from disentwine.nn.inversion import smallest_singular_values
from disentwine.nn.layered_decoder import EdgeDecoder, PixelwiseDecoder


class LayeredCausalWAE(LayeredModel):
    r"""$z_1 = u + s\,\epsilon$ with $\epsilon = f(x, u) = (h(x) - u) / s$, nonlinear mechanisms $g_2$, and
    a layered decoder $g_3$; minimise eq. 8 of CausalWAE:
    $\mathbb{E}\,\|x - \hat x\|^2 + \lambda_1 D(\epsilon \,\|\, \mathcal{N}(0, I)) + \lambda_2
    H(\epsilon, U)$, plus $\tfrac12 \|\epsilon\|^2$ and the negative log-likelihood of the mechanisms.

    The terms make $\epsilon$ small, normal, and independent of the labels. Layers and mechanisms are those
    of `LayeredCausalVAE`.

    Reference: Causal Representation Learning via WAE, Y. Noh, H. Lee and S. Jung, 2022.

    Arguments:
        image_shape, concept_spec, graph, composition: `for_data` reads them from the data set, as for
            `LayeredCausalVAE`.
        divergence: D, "mmd", or "gan" with a discriminator of latents.
        lambda_1: weight of D, relative to squared errors summed over pixels.
        lambda_2: weight of H.
        label_std: s, standard deviation of a concept around its label, in units of that of the label.
        teacher_forcing: share of the training images that are decoded from labels, not from latents.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        network: the encoder, "compact", "normed", "standard" or "mlp".
        discriminator_units: width of the four hidden layers of the discriminator.
        discriminator_learning_rate: learning rate of the discriminator.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> LayeredCausalWAE.for_data(pendulum).composition.concept_groups
    ((0,), (1,), (2, 3))
    """

    discriminator_training: DiscriminatorTraining

    not_in_weights = ("lambda_1", "lambda_2", "discriminator_learning_rate")

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        graph: Graph,
        composition: Composition,
        *,
        divergence: Divergence = "mmd",
        lambda_1: NonNegative = 10.0,
        lambda_2: NonNegative = 100.0,
        label_std: Positive = 0.005,
        teacher_forcing: Probability = 0.5,
        edges: Edges | None = None,
        knowledge: Knowledge = NO_KNOWLEDGE,
        network: Network = "compact",
        discriminator_units: Count = 512,
        discriminator_learning_rate: Positive = 5e-4,
    ) -> None:
        super().__init__(
            image_shape,
            concept_spec,
            graph,
            composition,
            label_std=label_std,
            teacher_forcing=teacher_forcing,
            edges=edges,
            knowledge=knowledge,
            network=network,
            encoder=ENCODERS[network](image_shape, len(graph.names)),
            # The decoders of results/causalwae.md, which had a sigmoid opacity and mechanisms fitted by
            # least squares.
            joint=(PixelwiseDecoder, EdgeDecoder),
        )
        self.divergence = divergence
        self.lambda_1, self.lambda_2 = lambda_1, lambda_2
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator: nn.Module | None = None
        if divergence == "gan":
            self.discriminator = latent_discriminator(len(graph.names), discriminator_units)
            self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def encode(self, x: Tensor) -> Tensor:
        """$h(x)$."""
        z: Tensor = self.encoder(x)
        return z

    def _exogenous(self, z: Tensor, u: Tensor, known: Tensor) -> Tensor:
        r"""$\epsilon$ (n, k); a sample of its prior where the label is missing."""
        return torch.where(known > 0, (z - u) / self.label_std, torch.randn_like(z))

    def loss(self, batch: Batch) -> Losses:
        """The terms of eq. 8, the distance of latents from labels, and the mechanism likelihood."""
        u, known = self.labels_of(batch)
        z = self.encode(batch.x)
        epsilon = self._exogenous(z, u, known)
        labelled = known.all(dim=1)
        if self.training:
            self.update_errors(z.detach(), u, labelled)
        chosen, labels = self.labels_to_decode(u, labelled)
        difference = batch.x - self.decoder(torch.where(chosen, labels, z))
        terms = {
            "reconstruction": difference.square().flatten(1).sum(1),
            "divergence": divergence_from_prior(epsilon, self.discriminator),
            "independence": hsic(epsilon[labelled], u[labelled])
            if labelled.any()
            else z.new_zeros(()),
            "labels": 0.5 * (epsilon * known).square().sum(1),
            **self.mechanism_terms(u, labelled),
        }
        return Losses(terms, {"divergence": self.lambda_1, "independence": self.lambda_2})

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Cross-entropy of the discriminator between samples of the prior and latents."""
        assert self.discriminator is not None
        u, known = self.labels_of(batch)
        epsilon = self._exogenous(self.encode(batch.x), u, known)
        return Losses({"cross_entropy": prior_discriminator_loss(epsilon, self.discriminator)})

    @torch.no_grad()
    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        r"""$\epsilon$ (n, k) of images and labels in their own units."""
        return self._exogenous(self.encode(x), self.standardise(u), u.isfinite())

    @torch.no_grad()
    def injectivity(self, x: Tensor) -> Tensor:
        """The smallest singular value (n,) of the decoder's Jacobian at the concepts of each image."""
        return smallest_singular_values(self.decoder, self.infer(x))
