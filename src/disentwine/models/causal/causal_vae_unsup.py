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
from disentwine.nn.images import accepts_images, as_latents, check_count


class UnsupervisedCausalVAE(LatentModel):
    r"""$\epsilon = h(x) + \zeta$, $z = (I - A^T)^{-1} \epsilon$ (eq. 1), $x = f(z) + \xi$; minimise
    $-\mathrm{ELBO} + \alpha H(A)$: CausalVAE without its mask layer and its labels (section 6.1).

    All entries of A are learnt, from 0. Concepts are unnamed, so there are no interventions; it is the
    paper's baseline without labels.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021, eqs 1, 13 and table 1.

    Arguments:
        image_shape, factors: `for_data` reads them from the data set; `factors` is the number of factors,
            whose labels are not used.
        concept_count: k; by default the number of factors.
        dimensions: d, latents per concept.
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
            raise UsageError(
                "concept_count: the data set has no factors; give the number of concepts"
            )
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
        """The current entries of A; concepts are named z0, z1 and so on."""
        return self.scm.named_weights([f"z{i}" for i in range(len(self.scm.edges))])

    def causal_layer(self, epsilon: Tensor) -> Tensor:
        """z (n, k, d) of flat exogenous variables (n, k d)."""
        z: Tensor = self.scm(epsilon.view(len(epsilon), -1, self.dimensions))
        return z

    def reconstruction_log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|\epsilon)$ of flat exogenous variables, (n,) nats."""
        return super().reconstruction_log_likelihood(x, self.causal_layer(z).flatten(1))

    def loss(self, batch: Batch) -> Losses:
        """The negative ELBO in nats, and the acyclicity of A; labels are ignored."""
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
        """Reconstruction of each image from its posterior mean, in the format of the input."""
        return super().decode(self.causal_layer(self.posterior(x).mean).flatten(1))

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior over exogenous variables."""
        check_count(n)
        weight = next(self.parameters())
        epsilon = torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype)
        return super().decode(self.causal_layer(epsilon).flatten(1))

    @torch.no_grad()
    def decode(self, latents: Any) -> Tensor:
        """Images decoded from concepts (n, k), as from `represent`.

        Arguments:
            latents: (n, k), an array or a tensor; all d latents of a concept have the given value.
        """
        like = next(self.parameters())
        z = as_latents(latents, width=len(self.scm.edges), like=like)
        return super().decode(z.repeat_interleave(self.dimensions, dim=1))
