"""CausalVAE/layered: nonlinear mechanisms, and a decoder in layers that compose."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from disentwine.causal.constraints import NOTHING, Knowledge
from disentwine.causal.interventions import LabelValues
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Positive, Probability
from disentwine.errors import UsageError
from disentwine.losses.elbo import gaussian_log_likelihood, kl_to_standard_normal
from disentwine.models.causal.base import Edges
from disentwine.models.causal.layered_base import LayeredModel
from disentwine.nn.distributions import DiagonalGaussian
from disentwine.nn.encoders import ENCODERS, ImageShape, Network
from disentwine.nn.inversion import least_squares
from disentwine.nn.layered_decoder import Box

Abduction = Literal["network", "least-squares"]
FITTED_IN = 3
"""Steps of least squares; more change nothing that can be seen."""

BEYOND = 3.0
"""Errors of the network that least squares may correct: so many of its standard deviations."""


class LayeredCausalVAE(LayeredModel):
    r"""$z_i = f_i(z_{pa(i)}) + n_i$ with a network $f_i$ each, $q(z|x)$ tied to the labels by the prior
    $\mathcal{N}(u_i, s^2)$ with a small s, and an image that is painted in layers, each from the few
    concepts that its pixels depend on.

    What the paper's model lacks: its linear causal layer cannot follow a shadow, and its joint decoder
    cannot paint an effect away from where its causes would put it. Layers that see only their own
    concepts can, since no other concept reaches them. The groups of concepts are learnt from the
    images (see `causal.grouping`).

    Arguments:
        image_shape, concept_names, label_mean, label_scale, learnt_graph, groups, boxes, levels,
            label_values: `for_data` reads them from the data set; the graph, the groups of concepts, the
            part of the image that each group is seen in and the values of effects that have few are
            learnt from its training split.
        label_std: s, the standard deviation of a concept around its label, in those of the label.
        teacher_forcing: share of the labelled training images that are painted from their labels, not
            their codes.
        abduction: how concepts are read from an image: by the encoder's "network" alone, or by
            "least-squares" between the image and what the concepts would paint, from there: closer,
            above all to causes, and far slower. Training does not notice.
        edges: the true graph, where it is known: (cause, effect) pairs.
        knowledge: what else is known of the graph before it is learnt.
        network: the encoder, "compact", "normed", "standard" or "mlp".

    >>> from disentwine.data import Pendulum
    >>> pendulum = Pendulum(size=32)
    >>> LayeredCausalVAE.for_data(pendulum).groups
    ((0,), (1,), (2, 3))
    """

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
        label_std: Positive = 0.001,
        teacher_forcing: Probability = 1.0,
        abduction: Abduction = "network",
        edges: Edges | None = None,
        knowledge: Knowledge = NOTHING,
        network: Network = "compact",
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
            encoder=ENCODERS[network](image_shape, 2 * len(concept_names)),
        )
        self.abduction = abduction
        self.log_scale = nn.Parameter(torch.tensor(-1.0))

    for_data = ForData(__init__)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        """$q(z|x)$; codes are standardised concepts."""
        return DiagonalGaussian.from_features(self.encoder(x))

    def codes(self, x: Tensor) -> Tensor:
        return self.posterior(x).mean

    def settled(self, x: Tensor) -> Tensor:
        if self.abduction not in get_args(Abduction):
            choices = " or ".join(repr(way) for way in get_args(Abduction))
            raise UsageError(f"abduction={self.abduction!r}: choose {choices}")
        z = super().settled(x)
        return z if self.abduction == "network" else self._fitted(x, z)

    @torch.no_grad()
    def _fitted(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\arg\max_n p(x|z(n))\,p(n)$ near codes z (n, k), with $z_i = f_i(z_{pa(i)}) + n_i$.

        So an effect that follows its causes exactly tells of them: how far a jet reaches, of the height
        of the water between two pixels. A term of noise is expected to be as large as among labels.
        """
        error = BEYOND**2 * self.encoder_error
        of_labels = self.noise_of(self.labels.rows).square().mean(0)
        kept = of_labels / (of_labels + error)
        return self.caused_by(
            least_squares(
                lambda n: ((x - self.paint(self.caused_by(n))) / self.log_scale.exp()).flatten(1),
                kept * self.noise_of(z),
                spread=(kept * error).sqrt(),
                iterations=FITTED_IN,
            )
        )

    def loss(self, batch: Batch) -> Losses:
        """Reconstruction, distance of codes from labels, and what mechanisms leave unexplained."""
        u, known = self.labels_of(batch)
        q = self.posterior(batch.x)
        labelled = known.all(dim=1)
        chosen, labels = self.labels_to_paint(u, labelled)
        z = torch.where(chosen, labels, q.sample())
        log_likelihood = gaussian_log_likelihood(
            batch.x, self.decoder(z), scale=self.log_scale.exp()
        )
        if self.training:
            self.note_errors(q.mean.detach(), u, labelled)
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
