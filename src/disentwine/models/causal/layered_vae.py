"""CausalVAE/layered: nonlinear mechanisms and a layered decoder."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NOTHING, Knowledge
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
FITTED_IN = 3
"""Steps of least squares; further steps change no pixel visibly."""

PRIOR_WIDTH = 3.0
"""Width of the prior of least squares around the encoding, in standard deviations of the encoder's error."""


class LayeredCausalVAE(LayeredModel):
    r"""$z_i = f_i(z_{pa(i)}) + n_i$ with a network $f_i$ each, $q(z|x)$ with the prior
    $\mathcal{N}(u_i, s^2)$ around the labels with a small s, and an image in layers, each decoded from
    the few concepts that its pixels depend on.

    The paper's linear causal layer cannot model a shadow, and its joint decoder cannot decode an effect
    that contradicts its causes. A layer of its own can, since no other concept is its input. The groups
    of concepts are learnt from the images (see `models.causal.pixel_attribution`).

    Arguments:
        image_shape, concept_spec, graph, composition: `for_data` reads them from the data set; the
            graph, the groups of concepts, the part of the image of each group and the values of effects
            that have few are learnt from its training split.
        label_std: s, the standard deviation of a concept around its label, in those of the label.
        teacher_forcing: share of the labelled training images that are decoded from labels, not from
            latents.
        abduction: how concepts are inferred from an image: by the "encoder", or by "least-squares"
            between the image and its reconstruction, starting from the encoding. The latter is more
            accurate, above all for causes, and far slower. Training does not depend on it.
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
        knowledge: Knowledge = NOTHING,
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
            choices = " or ".join(repr(way) for way in get_args(Abduction))
            raise UsageError(f"abduction={self.abduction!r}: choose {choices}")
        z = super().infer(x)
        return z if self.abduction == "encoder" else self._fitted(x, z)

    @torch.no_grad()
    def _fitted(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\arg\max_n p(x|z(n))\,p(n)$ near concepts z (n, k), with $z_i = f_i(z_{pa(i)}) + n_i$.

        So an effect that its causes determine informs about them: the reach of a jet about the height
        of the water between two pixels. The prior variance of noise is that among labels.
        """
        error = PRIOR_WIDTH**2 * self.encoder_error
        of_labels = self.noise_of(self.labels.rows).square().mean(0)
        kept = of_labels / (of_labels + error)
        return self.caused_by(
            least_squares(
                lambda n: (
                    (x - self.decode_latents(self.caused_by(n))) / self.log_scale.exp()
                ).flatten(1),
                kept * self.noise_of(z),
                spread=(kept * error).sqrt(),
                iterations=FITTED_IN,
            )
        )

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction, KL divergence from the prior around labels, and likelihood of the mechanisms."""
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
        tied = kl_to_standard_normal((q.mean - u) / s, q.log_variance - 2 * np.log(s))
        free = kl_to_standard_normal(q.mean, q.log_variance)
        return Losses(
            {
                "reconstruction": -log_likelihood,
                "kl": (known * tied + (1 - known) * free).sum(1),
                **self.mechanism_terms(u, labelled),
            }
        )
