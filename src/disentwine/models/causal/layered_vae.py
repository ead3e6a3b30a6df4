"""CausalVAE/layered: nonlinear mechanisms and a layered decoder."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NO_KNOWLEDGE, Knowledge
from disentwine.causal.graph import Graph
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Positive, Probability
from disentwine.errors import UsageError
from disentwine.losses.elbo import gaussian_log_likelihood, kl_to_standard_normal
from disentwine.models.causal.base import Edges
from disentwine.models.causal.layered_base import LayeredModel
from disentwine.models.causal.pixel_attribution import Composition
from disentwine.nn.encoders import ENCODERS, DiagonalGaussian, ImageShape, Network
from disentwine.nn.inversion import least_squares

Abduction = Literal["encoder", "least-squares"]
ITERATIONS = 3
"""Number of least-squares steps; further steps change no pixel visibly."""

PRIOR_WIDTH = 3.0
"""Standard deviation of the least-squares prior around the encoding, in units of the encoder's error."""


class LayeredCausalVAE(LayeredModel):
    r"""CausalVAE with mechanisms $z_i = f_i(z_{pa(i)}) + n_i$ with a network $f_i$ for each effect,
    $q(z|x)$ with the prior $\mathcal{N}(u_i, s^2)$ around the labels with a small s, and an image composed
    of layers, each decoded from the concepts that its pixels depend on.

    The paper's linear causal layer cannot model a shadow, and its joint decoder cannot decode effects that
    contradict their causes. A separate layer can, as it has no other concept as input. The groups of
    concepts are learnt from the images (see `models.causal.pixel_attribution`).

    Arguments:
        image_shape, concept_spec, graph, composition: `for_data` reads them from the data set; graph and
            composition are learnt from its training images.
        label_std: s, standard deviation of the prior around the label, in units of that of the label.
        teacher_forcing: share of the labelled training images that are decoded from labels, not from
            latents.
        abduction: how concepts are inferred from an image: by the "encoder", or by "least-squares"
            between the image and its reconstruction, starting from the encoding, which is more accurate,
            especially for causes, and much slower. Training does not depend on it.
        edges: the true graph, if it is known: (cause, effect) pairs.
        knowledge: prior knowledge of the graph.
        network: the encoder, "compact", "normed", "standard" or "mlp".

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> LayeredCausalVAE.for_data(pendulum).composition.concept_groups
    ((0,), (1,), (2, 3))
    """

    def __init__(
        self,
        image_shape: ImageShape,
        concept_spec: ConceptSpec,
        graph: Graph,
        composition: Composition,
        *,
        label_std: Positive = 0.001,
        teacher_forcing: Probability = 1.0,
        abduction: Abduction = "encoder",
        edges: Edges | None = None,
        knowledge: Knowledge = NO_KNOWLEDGE,
        network: Network = "compact",
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
            encoder=ENCODERS[network](image_shape, 2 * len(graph.names)),
        )
        self.abduction = abduction
        self.log_scale = nn.Parameter(torch.tensor(-1.0))

    for_data = ForData(__init__)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        """$q(z|x)$ of standardised concepts."""
        return DiagonalGaussian.from_features(self.encoder(x))

    def encode(self, x: Tensor) -> Tensor:
        return self.posterior(x).mean

    def infer(self, x: Tensor) -> Tensor:
        if self.abduction not in get_args(Abduction):
            choices = " or ".join(repr(method) for method in get_args(Abduction))
            raise UsageError(f"abduction={self.abduction!r}: choose {choices}")
        z = super().infer(x)
        return z if self.abduction == "encoder" else self._least_squares(x, z)

    @torch.no_grad()
    def _least_squares(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\arg\max_n p(x|z(n))\,p(n)$ near concepts z (n, k), with $z_i = f_i(z_{pa(i)}) + n_i$.

        Effects that are determined by their causes therefore improve the estimates of the causes. The
        prior variance of the noise is that of the labels.
        """
        error = PRIOR_WIDTH**2 * self.encoder_error
        noise_variance = self.noise_of(self.labels.rows).square().mean(0)
        shrinkage = noise_variance / (noise_variance + error)
        return self.concepts_of_noise(
            least_squares(
                lambda n: (
                    (x - self.decode_latents(self.concepts_of_noise(n))) / self.log_scale.exp()
                ).flatten(1),
                shrinkage * self.noise_of(z),
                spread=(shrinkage * error).sqrt(),
                iterations=ITERATIONS,
            )
        )

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction, KL divergence from the prior around labels, and mechanism likelihood."""
        u, known = self.labels_of(batch)
        q = self.posterior(batch.x)
        labelled = known.all(dim=1)
        chosen, labels = self.labels_to_decode(u, labelled)
        z = torch.where(chosen, labels, q.sample())
        log_likelihood = gaussian_log_likelihood(
            batch.x, self.decoder(z), scale=self.log_scale.exp()
        )
        if self.training:
            self.update_errors(q.mean.detach(), u, labelled)
        s = self.label_std
        kl_known = kl_to_standard_normal((q.mean - u) / s, q.log_variance - 2 * np.log(s))
        kl_missing = kl_to_standard_normal(q.mean, q.log_variance)
        return Losses(
            {
                "reconstruction": -log_likelihood,
                "kl": (known * kl_known + (1 - known) * kl_missing).sum(1),
                **self.mechanism_terms(u, labelled),
            }
        )
