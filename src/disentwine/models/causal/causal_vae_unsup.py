"""CausalVAE-unsup: CausalVAE's causal layer without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, ForData, Losses
from disentwine.core.types import Count, NonNegative, NonNegativeInt
from disentwine.errors import UsageError
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models.vae.vae import LatentModel
from disentwine.nn.concept_layers import LinearSCM, acyclicity
from disentwine.nn.encoders import ImageShape, Likelihood, Network
from disentwine.nn.images import accepts_images


class UnsupervisedCausalVAE(LatentModel):
    r"""$\epsilon = h(x) + \zeta$, $z = (I - A^T)^{-1} \epsilon$ (eq. 1), $x = f(z) + \xi$; minimise
    $-\mathrm{ELBO} + \alpha H(A)$: CausalVAE without its mask layer and its labels (section 6.1).

    All of A is learnt, from zero. No concept has a name, so none can be set: the paper shows by this
    baseline that labels are needed.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eqs 1, 13 and table 1.

    Arguments:
        image_shape, factors: `for_data` reads them from the data set; of its labels only their number
            is used.
        concept_count: k; by default the number of factors.
        dimensions: d, latents a concept.
        alpha: weight of the acyclicity H(A) (eq. 13).
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.

    >>> model = UnsupervisedCausalVAE(image_shape=(16, 16, 1), factors=0, concept_count=3)
    >>> model.represent(torch.rand(5, 1, 16, 16)).shape
    torch.Size([5, 3])
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "factors")
    not_in_weights = ("alpha",)

    def __init__(
        self,
        image_shape: ImageShape,
        factors: NonNegativeInt,
        *,
        concept_count: Count | None = None,
        dimensions: Count = 4,
        alpha: NonNegative = 1.0,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        k = concept_count or factors
        if k == 0:
            raise UsageError("concept_count: the data set has no factors to count; give a number")
        super().__init__(
            image_shape=image_shape, latent=k * dimensions, network=network, likelihood=likelihood
        )
        self.factors = factors
        self.concept_count = concept_count
        self.dimensions = dimensions
        self.alpha = alpha
        self.scm = LinearSCM(torch.zeros(k, k), edges=~torch.eye(k, dtype=torch.bool))

    for_data = ForData(__init__)

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"image_shape": dataset.image_shape, "factors": len(dataset.names)}

    def log_scalars(self) -> dict[str, float]:
        """The current entries of A; concepts have numbers for names."""
        return self.scm.named_weights([f"z{i}" for i in range(len(self.scm.edges))])

    def causal_layer(self, epsilon: Tensor) -> Tensor:
        """z (n, k, d) of flat exogenous variables (n, k d)."""
        z: Tensor = self.scm(epsilon.view(len(epsilon), -1, self.dimensions))
        return z

    def reconstruction_log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|\epsilon)$ of flat exogenous variables, (n,) nats."""
        return super().reconstruction_log_likelihood(x, self.causal_layer(z).flatten(1))

    def loss(self, batch: Batch) -> Losses:
        """The negative evidence lower bound in nats, and the acyclicity of A; labels are ignored."""
        q = self.posterior(batch.x)
        terms = {
            "reconstruction": -self.reconstruction_log_likelihood(batch.x, q.sample()),
            "kl": kl_to_standard_normal(q.mean, q.log_variance).sum(1),
            "acyclicity": acyclicity(self.scm.A),
        }
        return Losses(terms, {"acyclicity": self.alpha})

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """The mean of each concept's latents, (n, k), as in CausalVAE."""
        return self.causal_layer(self.posterior(x).mean).mean(-1)

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its posterior mean, in the form it was given."""
        return super().decode(self.causal_layer(self.posterior(x).mean).flatten(1))

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior over exogenous variables."""
        weight = next(self.parameters())
        epsilon = torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype)
        return super().decode(self.causal_layer(epsilon).flatten(1))

    @torch.no_grad()
    def decode(self, codes: Tensor) -> Tensor:
        """Images of concepts (n, k); all d latents of a concept have the given value."""
        return super().decode(codes.repeat_interleave(self.dimensions, dim=1))
