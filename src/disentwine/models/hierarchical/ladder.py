"""Hierarchical VAE with bottom-up inference, and Ladder VAE."""

from __future__ import annotations

from torch import Tensor, nn

from disentwine.core.model import ForData
from disentwine.core.types import Count, NonNegativeInt
from disentwine.losses.elbo import kl_between_gaussians
from disentwine.models.hierarchical.base import HierarchicalModel, LayerLatents
from disentwine.nn.encoders import DiagonalGaussian, ImageShape, Likelihood, Network
from disentwine.nn.ladder import GaussianHead, merge, repeated, standard_normal_like


class HierarchicalVAE(HierarchicalModel):
    r"""Hierarchical VAE with bottom-up inference: $q(z|x) = q(z_1|x) \prod_{i=2}^L q(z_i|z_{i-1})$.

    Each layer is Gaussian, with mean and variance from an MLP on the layer below.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, section 2: "VAE" of its
    tables; "VAE+BN" with `batch_norm`, and "VAE+BN+WU" with `warm_up_steps` as well.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        layers: number of latents of each layer, from the image up.
        hidden: width of the networks below each layer, for inference and generation.
        depth: number of layers of each of these networks.
        batch_norm: whether these networks use batch normalisation.
        warm_up_steps: updates over which the weight of the KL divergences rises from 0 to 1.
        importance_samples: K samples of z for each image in the importance-weighted bound; with one
            sample it is the ELBO with exact KL divergences.
        importance_from: number of updates with one sample before fine-tuning with K samples.
        network: "mlp", or "compact", "normed" or "standard" convolutions between image and first layer.
        likelihood: "bernoulli" pixels, or "gaussian" pixels each with a variance that depends on z_1.

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

    for_data = ForData(__init__)

    def _build_inference(self) -> None:
        self.posteriors = nn.ModuleList(
            self._gaussian(below, width, size)
            for below, width, size in zip(
                (self._features, *self.layers[:-1]), self.hidden, self.layers, strict=False
            )
        )

    def infer(self, x: Tensor, *, samples: int = 1, at_mean: bool = False) -> list[LayerLatents]:
        first, *others = self.posteriors
        q = [repeated(first(self.stem(x)), samples)]
        z = [_mean_or_sample(q[0], at_mean)]
        for posterior in others:
            q.append(posterior(z[-1]))
            z.append(_mean_or_sample(q[-1], at_mean))
        p = [prior(above) for prior, above in zip(self.priors, z[1:], strict=True)]
        p.append(standard_normal_like(q[-1]))
        return [LayerLatents(*layer) for layer in zip(z, q, p, strict=True)]

    def kl_per_layer(self, latents: list[LayerLatents]) -> list[Tensor]:
        """KL divergence of each layer: exact for the top layer, estimated by one sample below."""
        *below, (_, q, p) = latents
        top = kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance).sum(1)
        return [layer.log_ratio for layer in below] + [top]


class LadderVAE(HierarchicalModel):
    r"""Ladder VAE: $q(z_i|z_{i+1}, x)$ merges bottom-up inference with the top-down prior.

    The bottom-up pass is deterministic: $d_i = \mathrm{MLP}(d_{i-1})$, and $\hat\mu_{q,i},
    \hat\sigma_{q,i}^2$ are computed from $d_i$. Top-down, $q(z_i|z_{i+1}, x)$ is the product of
    $\mathcal{N}(\hat\mu_{q,i}, \hat\sigma_{q,i}^2)$ and the prior $\mathcal{N}(\mu_{p,i}, \sigma_{p,i}^2)$
    (eq. 18-19).

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        layers: number of latents of each layer, from the image up.
        hidden: width of the networks below each layer, for inference and generation.
        depth: number of layers of each of these networks.
        batch_norm: whether these networks use batch normalisation.
        warm_up_steps: updates over which the weight of the KL divergences rises from 0 to 1.
        importance_samples: K samples of z for each image in the importance-weighted bound; with one
            sample it is the ELBO with exact KL divergences.
        importance_from: number of updates with one sample before fine-tuning with K samples.
        network: "mlp", or "compact", "normed" or "standard" convolutions between image and first layer.
        likelihood: "bernoulli" pixels, or "gaussian" pixels each with a variance that depends on z_1.

    >>> import torch
    >>> model = LadderVAE(image_shape=(16, 16, 1), layers=(8, 4), hidden=(32, 16))
    >>> x = torch.rand(5, 1, 16, 16)
    >>> model.represent(x).shape, model.represent(x, layer=2).shape
    (torch.Size([5, 12]), torch.Size([5, 4]))
    """

    for_data = ForData(HierarchicalModel.__init__)

    def _build_inference(self) -> None:
        self.up = nn.ModuleList(
            self._mlp(below, width)
            for below, width, _ in zip(
                (self._features, *self.hidden), self.hidden, self.layers, strict=False
            )
        )
        self.heads = nn.ModuleList(
            GaussianHead(width, size) for width, size in zip(self.hidden, self.layers, strict=False)
        )

    def infer(self, x: Tensor, *, samples: int = 1, at_mean: bool = False) -> list[LayerLatents]:
        d = self.stem(x)
        bottom_up = []
        for up, head in zip(self.up, self.heads, strict=True):
            d = up(d)
            bottom_up.append(repeated(head(d), samples))
        q = bottom_up[-1]
        latents = [LayerLatents(_mean_or_sample(q, at_mean), q, standard_normal_like(q))]
        for q_hat, prior in zip(bottom_up[-2::-1], reversed(self.priors), strict=True):
            p = prior(latents[-1].z)
            q = merge(q_hat, p)
            latents.append(LayerLatents(_mean_or_sample(q, at_mean), q, p))
        return latents[::-1]

    def kl_per_layer(self, latents: list[LayerLatents]) -> list[Tensor]:
        """KL divergence of each layer: exact, as posterior and prior depend on the layer above only."""
        return [
            kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance).sum(1)
            for _, q, p in latents
        ]


def _mean_or_sample(q: DiagonalGaussian, at_mean: bool) -> Tensor:
    return q.mean if at_mean else q.sample()
