"""The VAE with several layers of latents, inferred from the image upwards."""

from __future__ import annotations

from torch import Tensor, nn

from disentwine.contracts.ranges import Count, NonNegativeInt
from disentwine.models.hierarchical import Draw, HierarchicalModel, Level, drawn
from disentwine.models.pixels import Likelihood
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.ladder import repeated, standard_normal_like
from disentwine.nn.networks import Network
from disentwine.objectives.importance import kl_between_gaussians


class HierarchicalVAE(HierarchicalModel):
    r"""Infer bottom-up: $q(z|x) = q(z_1|x) \prod_{i=2}^L q(z_i|z_{i-1})$, each layer a Gaussian
    whose mean and variance an MLP reads from the layer below.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, section 2: the VAE of its
    tables; with `batch_norm` the VAE+BN, and with `warm_up_steps` the VAE+BN+WU.

    Arguments: as in `LadderVAE`, but without batch normalisation by default.

    >>> import torch
    >>> from disentwine.contracts.model import Batch
    >>> model = HierarchicalVAE(image_shape=(16, 16, 1), layers=(8, 4), hidden=(32, 16))
    >>> list(model.loss(Batch(torch.rand(5, 1, 16, 16), torch.zeros(5, 0))).terms)
    ['reconstruction', 'kl_1', 'kl_2']
    """

    def __init__(
        self,
        *,
        image_shape: ImageShape,
        layers: tuple[Count, ...] = (64, 32, 16, 8, 4),
        hidden: tuple[Count, ...] = (512, 256, 128, 64, 32),
        depth: Count = 2,
        batch_norm: bool = False,
        warm_up_steps: NonNegativeInt = 0,
        importance_samples: Count = 1,
        importance_from: NonNegativeInt = 0,
        network: Network = "mlp",
        likelihood: Likelihood = "bernoulli",
    ) -> None:
        super().__init__(
            image_shape=image_shape,
            layers=layers,
            hidden=hidden,
            depth=depth,
            batch_norm=batch_norm,
            warm_up_steps=warm_up_steps,
            importance_samples=importance_samples,
            importance_from=importance_from,
            network=network,
            likelihood=likelihood,
        )
        self.posteriors = nn.ModuleList(
            self._gaussian(below, width, size)
            for below, width, size in zip(
                (self._features, *layers[:-1]), hidden, layers, strict=False
            )
        )

    def infer(self, x: Tensor, *, samples: int = 1, draw: Draw = drawn) -> list[Level]:
        first, *others = self.posteriors
        q = [repeated(first(self.front(x)), samples)]
        z = [draw(q[0])]
        for posterior in others:
            q.append(posterior(z[-1]))
            z.append(draw(q[-1]))
        p = [prior(above) for prior, above in zip(self.priors, z[1:], strict=True)]
        p.append(standard_normal_like(q[-1]))
        return [Level(*level) for level in zip(z, q, p, strict=True)]

    def divergences(self, levels: list[Level]) -> list[Tensor]:
        """Exact at the top; below, $z_{i+1}$ depends on $z_i$ itself, and one draw must do."""
        *below, (_, q, p) = levels
        top = kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance).sum(1)
        return [level.log_ratio for level in below] + [top]
