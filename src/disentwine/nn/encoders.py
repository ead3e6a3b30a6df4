"""Image encoders and decoders, Gaussian posteriors, and pixel likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.losses.elbo import bernoulli_log_likelihood, gaussian_log_likelihood

ImageShape = tuple[int, int, int]
"""(height, width, channels)"""

Activation = Callable[[int], tuple[nn.Module, ...]]
"""Maps the width of a layer to the modules after it: normalisation and nonlinearity."""


class PadToMultiple(nn.Module):
    """Pad by replication until height and width are multiples of `factor`.

    >>> import torch
    >>> PadToMultiple(16)(torch.zeros(1, 1, 28, 28)).shape
    torch.Size([1, 1, 32, 32])
    """

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        height, width = (-size % self.factor for size in x.shape[-2:])
        return F.pad(x, (0, width, 0, height), mode="replicate") if height or width else x


class CropTo(nn.Module):
    """Crop to the upper left `height` x `width` pixels: the inverse of `PadToMultiple`."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height, self.width = height, width

    def forward(self, x: Tensor) -> Tensor:
        return x[..., : self.height, : self.width]


def rectified(width: int) -> tuple[nn.Module, ...]:
    """ReLU, without normalisation."""
    return (nn.ReLU(),)


def normed(width: int) -> tuple[nn.Module, ...]:
    """Group normalisation and SiLU."""
    return nn.GroupNorm(math.gcd(width, 8), width), nn.SiLU()


Downsampling = Literal[4, 8, 16]
"""Pixels per grid position along each side."""


def grid_of(image_shape: ImageShape, downsampling: Downsampling) -> tuple[int, int]:
    """Rows and columns of an image's grid.

    >>> grid_of((64, 60, 3), 16)
    (4, 4)
    """
    height, width, _ = image_shape
    return math.ceil(height / downsampling), math.ceil(width / downsampling)


def standard_encoder(image_shape: ImageShape, out_features: int) -> nn.Sequential:
    """Four strided 4x4 convolutions and a hidden layer, as in most papers.

    Reference: Understanding disentangling in beta-VAE, C. Burgess et al., 2018, appendix A.
    """
    rows, columns = grid_of(image_shape, 16)
    return nn.Sequential(
        PadToMultiple(16),
        *(nn.Conv2d(image_shape[2], 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU()),
        nn.Flatten(),
        *(nn.Linear(64 * rows * columns, 256), nn.ReLU()),
        nn.Linear(256, out_features),
    )


def standard_decoder(in_features: int, image_shape: ImageShape) -> nn.Sequential:
    """The mirror of `standard_encoder`; returns logits or means (n, channels, height, width)."""
    height, width, channels = image_shape
    rows, columns = grid_of(image_shape, 16)
    return nn.Sequential(
        *(nn.Linear(in_features, 256), nn.ReLU()),
        *(nn.Linear(256, 64 * rows * columns), nn.ReLU()),
        nn.Unflatten(1, (64, rows, columns)),
        *(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU()),
        nn.ConvTranspose2d(32, channels, 4, 2, 1),
        CropTo(height, width),
    )


def compact_encoder(
    image_shape: ImageShape, out_features: int, *, activation: Activation = rectified
) -> nn.Sequential:
    """Convolutional encoder on patches of 4x4 pixels, without layers at full resolution.

    The first layer is a pixel-unshuffle and a 1x1 convolution in one. On a CPU this network reaches
    a given reconstruction error in less than half the time of the standard one.
    """
    rows, columns = grid_of(image_shape, 16)
    return nn.Sequential(
        PadToMultiple(16),
        *(nn.Conv2d(image_shape[2], 32, 4, 4), *activation(32)),
        *(nn.Conv2d(32, 32, 4, 2, 1), *activation(32)),
        *(nn.Conv2d(32, 32, 4, 2, 1), *activation(32)),
        nn.Flatten(),
        *(nn.Linear(32 * rows * columns, 256), *activation(256)),
        nn.Linear(256, out_features),
    )


def compact_decoder(
    in_features: int, image_shape: ImageShape, *, activation: Activation = rectified
) -> nn.Sequential:
    """The mirror of `compact_encoder`; the last layer is a pixel-shuffle to 4x4 pixels."""
    height, width, channels = image_shape
    rows, columns = grid_of(image_shape, 16)
    return nn.Sequential(
        *(nn.Linear(in_features, 256), *activation(256)),
        *(nn.Linear(256, 32 * rows * columns), *activation(32 * rows * columns)),
        nn.Unflatten(1, (32, rows, columns)),
        *(nn.ConvTranspose2d(32, 32, 4, 2, 1), *activation(32)),
        *(nn.ConvTranspose2d(32, 16, 4, 2, 1), *activation(16)),
        *(nn.Conv2d(16, 16 * channels, 3, padding=1), nn.PixelShuffle(4)),
        CropTo(height, width),
    )


class Sum(nn.ModuleList):
    """The sum of several modules' outputs for one input."""

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self
        total: Tensor = first(x)
        for other in others:
            total = total + other(x)
        return total


def grid_encoder(
    image_shape: ImageShape, out_channels: int, *, downsampling: Downsampling, width: int
) -> nn.Sequential:
    """Convolutional encoder of images to grids (n, out_channels, rows, columns).

    The first layer maps patches of 4x4 pixels to channels. A linear map of the pixels of each position
    is added, which learns colours and positions in few updates.

    >>> import torch
    >>> encoder = grid_encoder((64, 64, 3), 32, downsampling=8, width=48)
    >>> encoder(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 32, 8, 8])
    """
    channels = image_shape[2]
    convolutions = nn.Sequential(
        nn.Conv2d(channels, width, 4, 4),
        *(
            layer
            for _ in range(_halvings(downsampling))
            for layer in (*normed(width), nn.Conv2d(width, width, 4, 2, 1))
        ),
        _residual(width),
        *normed(width),
        nn.Conv2d(width, out_channels, 1),
    )
    linear = nn.Conv2d(channels, out_channels, downsampling, downsampling)
    return nn.Sequential(PadToMultiple(downsampling), Sum([linear, convolutions]))


def grid_decoder(
    in_channels: int, image_shape: ImageShape, *, downsampling: Downsampling, width: int
) -> nn.Sequential:
    """The mirror of `grid_encoder`; returns logits or means (n, channels, height, width)."""
    height, columns, channels = image_shape
    convolutions = nn.Sequential(
        nn.Conv2d(in_channels, width, 3, padding=1),
        _residual(width),
        *(
            layer
            for _ in range(_halvings(downsampling))
            for layer in (*normed(width), nn.ConvTranspose2d(width, width, 4, 2, 1))
        ),
        *normed(width),
        *(nn.Conv2d(width, 16 * channels, 3, padding=1), nn.PixelShuffle(4)),
    )
    linear = nn.Sequential(
        nn.Conv2d(in_channels, downsampling**2 * channels, 1), nn.PixelShuffle(downsampling)
    )
    return nn.Sequential(Sum([linear, convolutions]), CropTo(height, columns))


def _residual(width: int) -> Sum:
    """Residual block x + f(x), with a 3x3 and a 1x1 convolution in f."""
    f = nn.Sequential(
        *(*normed(width), nn.Conv2d(width, width, 3, padding=1)),
        *(nn.SiLU(), nn.Conv2d(width, width, 1)),
    )
    return Sum([nn.Identity(), f])


def _halvings(downsampling: Downsampling) -> int:
    return int(math.log2(downsampling)) - 2


HIDDEN = (512, 256)


def perceptron(sizes: Sequence[int], *, slope: float = 0.0) -> nn.Sequential:
    """Linear layers of the given sizes with ReLU between them, leaky where a slope is given.

    >>> perceptron([784, 512, 20])[0]
    Linear(in_features=784, out_features=512, bias=True)
    """
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), nn.LeakyReLU(slope) if slope else nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def mlp_encoder(image_shape: ImageShape, out_features: int) -> nn.Sequential:
    """MLP with two hidden layers on the flattened image."""
    return nn.Sequential(nn.Flatten(), *perceptron([math.prod(image_shape), *HIDDEN, out_features]))


def mlp_decoder(in_features: int, image_shape: ImageShape) -> nn.Sequential:
    """The mirror of `mlp_encoder`; returns logits or means (n, channels, height, width)."""
    height, width, channels = image_shape
    return nn.Sequential(
        *perceptron([in_features, *reversed(HIDDEN), math.prod(image_shape)]),
        nn.Unflatten(1, (channels, height, width)),
    )


Network = Literal["compact", "normed", "standard", "mlp"]
"""`normed` is `compact` with normalised layers and trains at three times the learning rate."""

ENCODERS: dict[Network, Callable[[ImageShape, int], nn.Module]] = {
    "compact": compact_encoder,
    "normed": partial(compact_encoder, activation=normed),
    "standard": standard_encoder,
    "mlp": mlp_encoder,
}

DECODERS: dict[Network, Callable[[int, ImageShape], nn.Module]] = {
    "compact": compact_decoder,
    "normed": partial(compact_decoder, activation=normed),
    "standard": standard_decoder,
    "mlp": mlp_decoder,
}


@dataclass(frozen=True)
class DiagonalGaussian:
    r"""Diagonal Gaussian $\mathcal{N}(\mu, \mathrm{diag}(\sigma^2))$ for each sample.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).
    """

    mean: Tensor
    log_variance: Tensor

    @classmethod
    def from_features(cls, features: Tensor) -> DiagonalGaussian:
        """Split the output (n, 2d) of a network into mean and log-variance.

        Half precision is converted to single precision, so that densities and moments are accurate.

        >>> DiagonalGaussian.from_features(torch.zeros(5, 20)).mean.shape
        torch.Size([5, 10])
        """
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        mean, log_variance = features.chunk(2, dim=1)
        return cls(mean, log_variance)

    def sample(self) -> Tensor:
        r"""Reparameterised sample $z = \mu + \sigma \odot \epsilon$, (n, d)."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean)


Likelihood = Literal["bernoulli", "gaussian"]


def log_noise_scale(likelihood: Likelihood) -> nn.Parameter | None:
    """Learnt log standard deviation of Gaussian pixels; None for Bernoulli pixels."""
    return nn.Parameter(torch.zeros(())) if likelihood == "gaussian" else None


def pixel_log_likelihood(x: Tensor, output: Tensor, log_scale: Tensor | None) -> Tensor:
    r"""$\log p(x|z)$, (n,) nats, from Gaussian means or, without a scale, from Bernoulli logits.

    >>> pixel_log_likelihood(torch.ones(1, 3), torch.zeros(1, 3), None)  # 3 log(1/2)
    tensor([-2.0794])
    """
    if log_scale is None:
        return bernoulli_log_likelihood(x, output)
    return gaussian_log_likelihood(x, output, scale=log_scale.exp())


def mean_pixels(output: Tensor, log_scale: Tensor | None) -> Tensor:
    """Mean images in [0, 1] from the decoder output that `pixel_log_likelihood` takes."""
    return output.sigmoid() if log_scale is None else output.clamp(0, 1)


class PixelDecoder(nn.Module):
    r"""Decoder $p(x|z)$ with Bernoulli pixels, or Gaussian pixels with one learnt noise scale.

    Arguments:
        latent: number of latent dimensions.
        image_shape: (height, width, channels).
        network: see `disentwine.nn.encoders`.
        likelihood: the distribution over pixels.

    >>> decoder = PixelDecoder(4, (16, 16, 3), network="compact", likelihood="bernoulli")
    >>> decoder(torch.zeros(5, 4)).shape
    torch.Size([5, 3, 16, 16])
    """

    def __init__(
        self, latent: int, image_shape: ImageShape, *, network: Network, likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.network = DECODERS[network](latent, image_shape)
        self.log_scale = log_noise_scale(likelihood)

    def forward(self, z: Tensor) -> Tensor:
        """Mean images of latents (n, latent), in [0, 1]."""
        return mean_pixels(self.network(z), self.log_scale)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        return pixel_log_likelihood(x, self.network(z), self.log_scale)
