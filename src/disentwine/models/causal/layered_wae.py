"""CausalWAE/layered: a Wasserstein autoencoder with nonlinear mechanisms and a decoder in layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from disentwine.causal.constraints import NOTHING, Knowledge
from disentwine.causal.interventions import LabelValues
from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, Positive, Probability
from disentwine.losses.kernels import hsic
from disentwine.models.causal.base import Edges
from disentwine.models.causal.layered_base import LayeredModel
from disentwine.models.wae import (
    Divergence,
    discriminator_training,
    divergence_from_prior,
    latent_discriminator,
    prior_discriminator_loss,
)
from disentwine.nn.encoders import ENCODERS, ImageShape, Network
from disentwine.nn.inversion import smallest_singular_values
from disentwine.nn.layered_decoder import Box, EdgeDecoder, PixelwiseDecoder


class LayeredCausalWAE(LayeredModel):
    r"""$z_1 = u + s\,\epsilon$ with $\epsilon = f(x, u) = (h(x) - u) / s$, effects that follow nonlinear
    mechanisms $g_2$, and an image $g_3$ that is painted in layers; minimise eq. 8 of CausalWAE:
    $\mathbb{E}\,\|x - \hat x\|^2 + \lambda_1 D(\epsilon \,\|\, \mathcal{N}(0, I)) + \lambda_2
    H(\epsilon, U)$, beside $\tfrac12 \|\epsilon\|^2$ and what mechanisms leave unexplained.

    What is read from an image beyond its labels is thereby held to be small, normal, and independent of
    them. Layers and mechanisms are those of `LayeredCausalVAE`, which says what the papers' linear
    causal layer and joint decoder lack.

    Reference: Causal Representation Learning via WAE, Y. Noh, H. Lee and S. Jung, 2022.

    Arguments:
        image_shape, concept_names, label_mean, label_scale, learnt_graph, groups, boxes, levels,
            label_values: `for_data` reads them from the data set, as for `LayeredCausalVAE`.
        divergence: D, "mmd" or "gan": a discriminator of codes, which the model plays against.
        lambda_1: weight of D beside squared errors summed over pixels.
        lambda_2: weight of H.
        label_std: s, the standard deviation of a concept around its label, in those of the label.
        teacher_forcing: share of the training images that are painted from their labels, not their codes.
        edges: the true graph, where it is known: (cause, effect) pairs.
        knowledge: what else is known of the graph before it is learnt.
        network: the encoder, "compact", "normed", "standard" or "mlp".
        discriminator_units: of each of the discriminator's four hidden layers.
        discriminator_learning_rate: of the discriminator's Adam.

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> LayeredCausalWAE.for_data(pendulum).groups
    ((0,), (1,), (2, 3))
    """

    discriminator_training: DiscriminatorTraining

    not_in_weights = ("lambda_1", "lambda_2", "discriminator_learning_rate")

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
        levels: tuple[tuple[float, ...], ...] = (),
        label_values: LabelValues = (),
        divergence: Divergence = "mmd",
        lambda_1: NonNegative = 10.0,
        lambda_2: NonNegative = 100.0,
        label_std: Positive = 0.005,
        teacher_forcing: Probability = 0.5,
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
            groups=groups,
            boxes=boxes,
            levels=levels,
            label_values=label_values,
            label_std=label_std,
            teacher_forcing=teacher_forcing,
            edges=edges,
            knowledge=knowledge,
            network=network,
            encoder=ENCODERS[network](image_shape, len(concept_names)),
            # Those of its table (results/causalwae.md), which was measured with a sigmoid for opacity and
            # mechanisms by least squares.
            together=(PixelwiseDecoder, EdgeDecoder),
        )
        self.divergence = divergence
        self.lambda_1, self.lambda_2 = lambda_1, lambda_2
        self.discriminator_units = discriminator_units
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator: nn.Module | None = None
        if divergence == "gan":
            self.discriminator = latent_discriminator(len(concept_names), discriminator_units)
            self.discriminator_training = discriminator_training(discriminator_learning_rate)

    for_data = ForData(__init__)

    def codes(self, x: Tensor) -> Tensor:
        """$h(x)$."""
        z: Tensor = self.encoder(x)
        return z

    def _beyond(self, z: Tensor, u: Tensor, known: Tensor) -> Tensor:
        r"""$\epsilon$ (n, k); a draw of its prior where there is no label to tell."""
        return torch.where(known > 0, (z - u) / self.label_std, torch.randn_like(z))

    def loss(self, batch: Batch) -> Losses:
        """Every term of eq. 8, the distance of codes from labels, and what mechanisms leave unexplained."""
        u, known = self.labels_of(batch)
        z = self.codes(batch.x)
        epsilon = self._beyond(z, u, known)
        labelled = known.all(dim=1)
        if self.training:
            self.note_errors(z.detach(), u, labelled)
        chosen, labels = self.labels_to_paint(u, labelled)
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
        """The cross-entropy of telling draws of the prior from codes."""
        assert self.discriminator is not None
        u, known = self.labels_of(batch)
        epsilon = self._beyond(self.codes(batch.x), u, known)
        return Losses({"cross_entropy": prior_discriminator_loss(epsilon, self.discriminator)})

    @torch.no_grad()
    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        r"""$\epsilon$ of images and their labels in their own units, (n, k)."""
        return self._beyond(self.codes(x), self.standardise(u), u.isfinite())

    @torch.no_grad()
    def injectivity(self, x: Tensor) -> Tensor:
        """The smallest singular value (n,) of the decoder's Jacobian at the code of each image."""
        return smallest_singular_values(self.decoder, self.settled(x))
