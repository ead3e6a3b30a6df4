"""Networks of hierarchical VAEs: Gaussian layers, precision-weighted merge, stem and head."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.encoders import DECODERS, ENCODERS, DiagonalGaussian, ImageShape, Network

SLOPE = 0.1
"""Negative slope of the leaky ReLU max(x, 0.1 x)."""

MIN_VARIANCE = 1e-5
"""Lower bound on variances, which keeps their logarithm finite."""


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses the running statistics for batches of one row.

    >>> BatchNorm(4)(torch.ones(1, 4)).shape
    torch.Size([1, 4])
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) == 1:
            statistics = self.running_mean, self.running_var
            return F.batch_norm(x, *statistics, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def deterministic(in_features: int, width: int, *, depth: int, batch_norm: bool) -> nn.Sequential:
    r"""Deterministic block $d(y) = \mathrm{MLP}(y)$: `depth` times linear, batch normalisation, leaky ReLU.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, sections 2 and 2.3.

    >>> len(deterministic(784, 512, depth=2, batch_norm=True))
    6
    """
    modules: list[nn.Module] = []
    for fan_in in [in_features, *[width] * (depth - 1)]:
        # Batch normalisation cancels a bias.
        modules.append(nn.Linear(fan_in, width, bias=not batch_norm))
        modules += [BatchNorm(width)] if batch_norm else []
        modules.append(nn.LeakyReLU(SLOPE))
    return nn.Sequential(*modules)


class GaussianHead(nn.Module):
    r"""Gaussian with $\mu = \mathrm{Linear}(d)$ and $\sigma^2 = \mathrm{Softplus}(\mathrm{Linear}(d))$.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, section 2.

    >>> GaussianHead(32, 4)(torch.zeros(5, 32)).mean.shape
    torch.Size([5, 4])
    """

    def __init__(self, in_features: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, 2 * size)

    def forward(self, d: Tensor) -> DiagonalGaussian:
        mean, raw = self.linear(d).chunk(2, dim=1)
        return DiagonalGaussian(mean, positive(raw).log())


class GaussianLayer(nn.Module):
    r"""Stochastic layer $\mathcal{N}(\mu(y), \sigma^2(y))$ of `size` latents: an MLP and a Gaussian head."""

    def __init__(
        self, in_features: int, width: int, size: int, *, depth: int, batch_norm: bool
    ) -> None:
        super().__init__()
        self.d = deterministic(in_features, width, depth=depth, batch_norm=batch_norm)
        self.head = GaussianHead(width, size)

    def forward(self, y: Tensor) -> DiagonalGaussian:
        gaussian: DiagonalGaussian = self.head(self.d(y))
        return gaussian


def positive(raw: Tensor) -> Tensor:
    """Variance from a real number: softplus plus `MIN_VARIANCE`."""
    return F.softplus(raw) + MIN_VARIANCE


def merge(q_hat: DiagonalGaussian, p: DiagonalGaussian) -> DiagonalGaussian:
    r"""Precision-weighted product of two Gaussians: $\sigma_q^2 = (\hat\sigma_q^{-2} + \sigma_p^{-2})^{-1}$,
    $\mu_q = \sigma_q^2 (\hat\mu_q \hat\sigma_q^{-2} + \mu_p \sigma_p^{-2})$.

    Precisions are combined in the log domain, so that none overflows.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, eq. 18-19.

    Arguments:
        q_hat: bottom-up posterior, from the image.
        p: top-down prior, from the layer above.

    >>> sharp, wide = (DiagonalGaussian(torch.full((1, 1), m), torch.full((1, 1), v).log())
    ...                for m, v in ((3.0, 1.0), (0.0, 2.0)))
    >>> merged = merge(sharp, wide)
    >>> merged.mean, merged.log_variance.exp()
    (tensor([[2.]]), tensor([[0.6667]]))
    """
    odds = p.log_variance - q_hat.log_variance
    mean = torch.lerp(p.mean, q_hat.mean, torch.sigmoid(odds))
    return DiagonalGaussian(mean, q_hat.log_variance + F.logsigmoid(odds))


def standard_normal_like(q: DiagonalGaussian) -> DiagonalGaussian:
    r"""The standard normal $\mathcal{N}(0, I)$ in the shape of q."""
    zeros = torch.zeros_like(q.mean)
    return DiagonalGaussian(zeros, zeros)


def repeated(q: DiagonalGaussian, times: int) -> DiagonalGaussian:
    """A Gaussian whose rows are tiled `times` times: (n, d) to (times n, d)."""
    if times == 1:
        return q
    return DiagonalGaussian(q.mean.repeat(times, 1), q.log_variance.repeat(times, 1))


class MeanCentred(nn.Module):
    r"""Mean-centred network $f(x) - f(\bar x)$ with the mean image $\bar x$.

    In training $\bar x$ is the mean of the batch, in evaluation a running mean. If most of an image is
    constant, such as a white background, the mean of f is much larger than its standard deviation and
    changes faster than the running statistics of a following batch normalisation. Subtracting
    $f(\bar x)$ removes it.

    Arguments:
        network: f.
        image_shape: (height, width, channels) of x.
        momentum: weight of a batch in the running mean.

    >>> centred = MeanCentred(nn.Flatten(), (8, 8, 1))
    >>> centred(torch.rand(16, 1, 8, 8)).mean().abs() < 1e-6
    tensor(True)
    """

    mean: Tensor
    batches: Tensor

    def __init__(
        self, network: nn.Module, image_shape: ImageShape, *, momentum: float = 0.01
    ) -> None:
        super().__init__()
        height, columns, channels = image_shape
        self.network, self.momentum = network, momentum
        self.register_buffer("mean", torch.full((1, channels, height, columns), 0.5))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean
        # A single image would be cancelled by its own mean.
        if self.training and len(x) > 1:
            mean = x.mean(dim=0, keepdim=True)
            self.batches += 1
            # The plain mean of the first batches, then an exponential moving average.
            self.mean.lerp_(mean.detach(), (1 / self.batches).clamp(min=self.momentum).to(x))
        difference: Tensor = self.network(x) - self.network(mean)
        return difference


def image_stem(network: Network, image_shape: ImageShape, width: int) -> tuple[nn.Module, int]:
    """Stem from images to features, and the number of features.

    For "mlp" the features are the pixels; otherwise convolutions compute `width` of them.

    >>> stem, features = image_stem("compact", (64, 64, 3), 256)
    >>> stem(torch.zeros(2, 3, 64, 64)).shape, features
    (torch.Size([2, 256]), 256)
    """
    if network == "mlp":
        return nn.Flatten(), math.prod(image_shape)
    return nn.Sequential(ENCODERS[network](image_shape, width), nn.LeakyReLU(0.1)), width


def image_head(network: Network, width: int, image_shape: ImageShape) -> nn.Module:
    """Head from `width` features to pixels: one linear layer, or transposed convolutions.

    >>> image_head("mlp", 512, (28, 28, 1))(torch.zeros(2, 512)).shape
    torch.Size([2, 1, 28, 28])
    """
    if network == "mlp":
        height, columns, channels = image_shape
        linear = nn.Linear(width, math.prod(image_shape))
        return nn.Sequential(linear, nn.Unflatten(1, (channels, height, columns)))
    return DECODERS[network](width, image_shape)
