"""Bottom-up hierarchical VAE; Ladder VAE."""

from __future__ import annotations

from torch import Tensor, nn

from disentwine.core.model import ForData
from disentwine.core.types import Count, NonNegativeInt
from disentwine.losses.elbo import kl_between_gaussians
from disentwine.models.hierarchical.base import Draw, HierarchicalModel, Level, drawn
from disentwine.nn.distributions import Likelihood
from disentwine.nn.encoders import ImageShape, Network
from disentwine.nn.ladder import GaussianHead, merge, repeated, standard_normal_like


class HierarchicalVAE(HierarchicalModel):
    r"""Infer bottom-up: $q(z|x) = q(z_1|x) \prod_{i=2}^L q(z_i|z_{i-1})$, each layer a Gaussian
    whose mean and variance an MLP reads from the layer below.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, section 2: the VAE of its
    tables; with `batch_norm` the VAE+BN, and with `warm_up_steps` the VAE+BN+WU.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        layers: how many latents each layer has, from the image up.
        hidden: width of the networks below each layer, upwards and downwards.
        depth: layers of each of these networks.
        batch_norm: normalise in each of them, over the batch.
        warm_up_steps: updates over which the divergences' weight rises from 0 to 1.
        importance_samples: K draws of z an image, whose importance-weighted bound is maximised; with
            one it is the usual bound, with exact divergences.
        importance_from: updates made with one draw before K are taken: fine-tuning.
        network: "mlp", or "compact", "normed" or "standard" convolutions between pixels and the first layer.
        likelihood: "bernoulli" pixels, or "gaussian" ones with a variance each, as z_1 says.

    >>> import torch
    >>> from disentwine.core.model import Batch
    >>> model = HierarchicalVAE(image_shape=(16, 16, 1), layers=(8, 4), hidden=(32, 16))
    >>> list(model.loss(Batch(torch.rand(5, 1, 16, 16), torch.zeros(5, 0))).terms)
    ['reconstruction', 'kl_1', 'kl_2']
    """

    def __init__(
        self,
        image_shape: ImageShape,
        *,
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

    for_data = ForData(__init__)

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


class LadderVAE(HierarchicalModel):
    r"""Infer upwards without noise, $d_i = \mathrm{MLP}(d_{i-1})$, $\hat\mu_{q,i}, \hat\sigma_{q,i}^2$
    from $d_i$; then downwards, $q(z_i|z_{i+1}, x)$ the product of $\mathcal{N}(\hat\mu_{q,i},
    \hat\sigma_{q,i}^2)$ and the prior $\mathcal{N}(\mu_{p,i}, \sigma_{p,i}^2)$ (eq. 18-19).

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        layers: how many latents each layer has, from the image up.
        hidden: width of the networks below each layer, upwards and downwards.
        depth: layers of each of these networks.
        batch_norm: normalise in each of them, over the batch.
        warm_up_steps: updates over which the divergences' weight rises from 0 to 1.
        importance_samples: K draws of z an image, whose importance-weighted bound is maximised; with
            one it is the usual bound, with exact divergences.
        importance_from: updates made with one draw before K are taken: fine-tuning.
        network: "mlp", or "compact", "normed" or "standard" convolutions between pixels and the first layer.
        likelihood: "bernoulli" pixels, or "gaussian" ones with a variance each, as z_1 says.

    >>> import torch
    >>> model = LadderVAE(image_shape=(16, 16, 1), layers=(8, 4), hidden=(32, 16))
    >>> x = torch.rand(5, 1, 16, 16)
    >>> model.represent(x).shape, model.represent(x, layer=2).shape
    (torch.Size([5, 12]), torch.Size([5, 4]))
    """

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        layers: tuple[Count, ...] = (64, 32, 16, 8, 4),
        hidden: tuple[Count, ...] = (512, 256, 128, 64, 32),
        depth: Count = 2,
        batch_norm: bool = True,
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
        self.up = nn.ModuleList(
            self._mlp(below, width)
            for below, width, _ in zip((self._features, *hidden), hidden, layers, strict=False)
        )
        self.heads = nn.ModuleList(
            GaussianHead(width, size) for width, size in zip(hidden, layers, strict=False)
        )

    for_data = ForData(__init__)

    def infer(self, x: Tensor, *, samples: int = 1, draw: Draw = drawn) -> list[Level]:
        d = self.front(x)
        said = []
        for up, head in zip(self.up, self.heads, strict=True):
            d = up(d)
            said.append(repeated(head(d), samples))
        q = said[-1]
        levels = [Level(draw(q), q, standard_normal_like(q))]
        for q_hat, prior in zip(said[-2::-1], reversed(self.priors), strict=True):
            p = prior(levels[-1].z)
            q = merge(q_hat, p)
            levels.append(Level(draw(q), q, p))
        return levels[::-1]

    def divergences(self, levels: list[Level]) -> list[Tensor]:
        """Exact: a layer's posterior and prior both follow from the layer above."""
        return [
            kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance).sum(1)
            for _, q, p in levels
        ]
