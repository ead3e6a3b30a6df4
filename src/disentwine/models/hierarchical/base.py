"""Base of hierarchical VAEs: generative model, bounds, encoding and decoding."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from disentwine.core.model import Batch, Losses, Model
from disentwine.core.plan import TrainingSettings, unfinished_warm_up
from disentwine.core.types import Count, NonNegativeInt
from disentwine.errors import UsageError
from disentwine.losses.elbo import (
    bernoulli_log_likelihood,
    gaussian_log_density,
    importance_weighted_bound,
    kl_between_gaussians,
)
from disentwine.losses.schedules import linear
from disentwine.nn.encoders import DiagonalGaussian, ImageShape, Likelihood, Network
from disentwine.nn.images import accepts_images, as_latents, check_count, evaluation_mode
from disentwine.nn.ladder import (
    GaussianLayer,
    MeanCentred,
    deterministic,
    image_head,
    image_stem,
    positive,
)

MIN_PIXEL_STD = 1 / 255
"""Lower bound on the standard deviation of Gaussian pixels: one grey level."""


class LayerLatents(NamedTuple):
    """Latents z of one layer, their posterior q, and their prior p given the layer above."""

    z: Tensor
    q: DiagonalGaussian
    p: DiagonalGaussian

    @property
    def log_ratio(self) -> Tensor:
        r"""$\log q(z_i|\cdot) - \log p(z_i|z_{i+1})$ of each row, (rows,) nats."""
        q = gaussian_log_density(self.z, self.q.mean, self.q.log_variance)
        return (q - gaussian_log_density(self.z, self.p.mean, self.p.log_variance)).sum(1)


class HierarchicalModel(Model):
    r"""Hierarchy of L latent layers: $p(z) = p(z_L) \prod_i p(z_i|z_{i+1})$, $p(z_L) = \mathcal{N}(0, I)$,
    $p(z_i|z_{i+1}) = \mathcal{N}(\mu_{p,i}(z_{i+1}), \sigma_{p,i}^2(z_{i+1}))$, and $p(x|z_1)$.

    Subclasses define the inference of z. Layers are numbered as in the paper: 1 is next to the image, L
    is the top.

    The *representation* is the posterior mean of all layers, bottom to top, in the coordinates in which
    the prior is a standard normal: $\epsilon_i = (z_i - \mu_{p,i}) / \sigma_{p,i}$, and $\epsilon_L = z_L$.
    These standardised latents are 0 where a layer adds no information to the layer above; changing one
    also changes the layers below. The latents $z_i$ of a layer are `represent(x, layer=i)`.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, eq. 1-3.

    Arguments: as in `LadderVAE`.
    """

    not_in_weights = ("warm_up_steps",)

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
        super().__init__()
        if not layers:
            raise UsageError("layers=[]: give at least one layer, such as [16,8]")
        if len(hidden) < len(layers):
            raise UsageError(
                f"hidden={list(hidden)} has {len(hidden)} widths for {len(layers)} layers={list(layers)}: "
                "give the width of the network below each layer"
            )
        self.image_shape = image_shape
        self.layers, self.hidden = layers, hidden
        self.depth, self.batch_norm = depth, batch_norm
        self.warm_up_steps = warm_up_steps
        self.importance_samples, self.importance_from = importance_samples, importance_from
        self.network, self.likelihood = network, likelihood
        height, columns, channels = image_shape
        outputs = 2 * channels if likelihood == "gaussian" else channels
        self._mlp = partial(deterministic, depth=depth, batch_norm=batch_norm)
        self._gaussian = partial(GaussianLayer, depth=depth, batch_norm=batch_norm)
        stem, self._features = image_stem(network, image_shape, hidden[0])
        self.stem = MeanCentred(stem, image_shape) if batch_norm else stem
        self.priors = nn.ModuleList(
            self._gaussian(above, width, size)
            for above, width, size in zip(layers[1:], hidden[1:], layers, strict=False)
        )
        self.decoder = nn.Sequential(
            self._mlp(layers[0], hidden[0]),
            image_head(network, hidden[0], (height, columns, outputs)),
        )
        self._build_inference()

    def check_training(self, options: TrainingSettings) -> list[str]:
        """A warning if training is shorter than the warm-up."""
        warnings = unfinished_warm_up(options, self.warm_up_steps)
        return [*warnings, *super().check_training(options)]

    @abstractmethod
    def _build_inference(self) -> None:
        """Create the networks of the posterior."""

    @abstractmethod
    def infer(self, x: Tensor, *, samples: int = 1, at_mean: bool = False) -> list[LayerLatents]:
        """Latents of every layer, bottom to top.

        Arguments:
            x: (n, channels, height, width).
            samples: number of samples of z per image; rows are the images, repeated `samples` times.
            at_mean: use posterior means instead of samples.
        """

    def kl_per_layer(self, latents: list[LayerLatents]) -> list[Tensor]:
        r"""An unbiased estimate of $D_{KL}$ of each layer, (rows,) nats each."""
        return [layer.log_ratio for layer in latents]

    def loss(self, batch: Batch) -> Losses:
        """The negative bound in nats, with terms kl_1 of the lowest layer to kl_L of the top layer."""
        beta = linear(batch.step, end=1.0, steps=self.warm_up_steps)
        samples = self.importance_samples if batch.step >= self.importance_from else 1
        latents = self.infer(batch.x, samples=samples)
        log_likelihood = self.log_likelihood(batch.x, latents[0].z)
        names = [f"kl_{i}" for i in range(1, len(latents) + 1)]
        kl = dict(zip(names, self.kl_per_layer(latents), strict=True))
        if samples == 1:
            return Losses({"reconstruction": -log_likelihood, **kl}, dict.fromkeys(kl, beta))
        log_weights = log_likelihood - beta * self._log_ratio(latents)
        bound = importance_weighted_bound(log_weights.view(-1, len(batch.x)))
        rows = {"reconstruction": -log_likelihood, **kl}
        logged = {name: row.detach().view(-1, len(batch.x)).mean(0) for name, row in rows.items()}
        return Losses({"bound": -bound, **logged}, dict.fromkeys(logged, 0.0))

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z_1)$, (rows,) nats; the rows of z repeat the images one or more times."""
        output = self.decoder(z)
        if len(z) != len(x):
            x = x.repeat(len(z) // len(x), 1, 1, 1)
        if self.likelihood == "bernoulli":
            return bernoulli_log_likelihood(x, output)
        mean, raw = output.chunk(2, dim=1)
        log_variance = (positive(raw) + MIN_PIXEL_STD**2).log()
        return gaussian_log_density(x, mean, log_variance).flatten(1).sum(1)

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        r"""Log importance weights $\log p(x, z) - \log q(z|x)$, (samples, n), with z sampled from q."""
        with evaluation_mode(self):
            latents = self.infer(x, samples=samples)
            log_weights = self.log_likelihood(x, latents[0].z) - self._log_ratio(latents)
        return log_weights.view(samples, len(x))

    def _log_ratio(self, latents: list[LayerLatents]) -> Tensor:
        return torch.stack([layer.log_ratio for layer in latents]).sum(0)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        r"""Posterior $q(\epsilon|x)$ of the standardised latents, each layer given the means of the others.

        Its KL divergence from a standard normal is $D_{KL}(q(z_i|\cdot) \,\|\, p(z_i|z_{i+1}))$.
        """
        latents = self.infer(x, at_mean=True)
        means = [(q.mean - p.mean) * torch.exp(-0.5 * p.log_variance) for _, q, p in latents]
        log_variances = [q.log_variance - p.log_variance for _, q, p in latents]
        return DiagonalGaussian(torch.cat(means, dim=1), torch.cat(log_variances, dim=1))

    @accepts_images
    def kl_per_latent(self, x: Tensor) -> Tensor:
        r"""$D_{KL}(q(z_{ik}|\cdot) \,\|\, p(z_{ik}|z_{i+1}))$ of each latent k of each layer i, bottom to
        top, (n, latents) nats, for one sample of z per image.

        It is 0 for latents that follow the prior given the layer above. For the ladder VAE, its sum over
        a layer is an unbiased estimate of the term of this layer in the bound. For bottom-up inference it
        is not, as $z_{i+1}$ depends on $z_i$.
        """
        return torch.cat(
            [
                kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance)
                for _, q, p in self.infer(x)
            ],
            dim=1,
        )

    @property
    def latent_layers(self) -> tuple[int, ...]:
        """Layer of each latent; layer 1 is next to the image."""
        return tuple(i for i, size in enumerate(self.layers, start=1) for _ in range(size))

    @accepts_images
    def represent(self, x: Tensor, layer: int | None = None) -> Tensor:
        r"""Standardised latents $\epsilon$ of each image; or the posterior mean of $z_i$ for a layer i."""
        if layer is None:
            return self.posterior(x).mean
        return self.infer(x, at_mean=True)[self._index(layer)].q.mean

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Images decoded from the posterior means, in the format of the input."""
        return self._image(self.infer(x, at_mean=True)[0].z)

    def decode(self, latents: ArrayLike | Tensor, layer: int | None = None) -> Tensor:
        r"""Mean images decoded from standardised latents; or from $z_i$ of one layer.

        Arguments:
            latents: (n, d), an array or a tensor, as from `represent`.
            layer: layer of `latents`, with the layers below at the mean of the prior; all layers when
                omitted.
        """
        weight = next(self.parameters())
        with evaluation_mode(self):
            if layer is not None:
                i = self._index(layer)
                z = as_latents(
                    latents, width=self.layers[i], like=weight, what=f"latents of layer {i + 1}"
                )
                return self._image(self._descend(z, [z.new_zeros(())] * i))
            z = as_latents(latents, width=sum(self.layers), like=weight)
            *below, top = torch.split(z, list(self.layers), dim=1)
            return self._image(self._descend(top, below))

    def sample(
        self, n: int, *, layer: int | None = None, latents: ArrayLike | Tensor | None = None
    ) -> Tensor:
        """Images decoded from samples of the prior, optionally given the latents of one layer.

        Arguments:
            n: number of images.
            layer: layer of `latents`; the top layer when omitted.
            latents: (n or 1, size) latents of that layer, as from `represent(x, layer=i)`; sampled from
                the prior when omitted.
        """
        check_count(n)
        if latents is None and layer is not None:
            raise UsageError(f"layer={layer}: also give the latents of that layer")
        index = self._index(len(self.layers) if layer is None else layer)
        weight = next(self.parameters())
        noise = [weight.new_empty(n, size).normal_() for size in self.layers[: index + 1]]
        top = noise.pop()
        if latents is not None:
            given = torch.as_tensor(latents).to(weight)
            if tuple(given.shape) not in ((n, top.shape[1]), (1, top.shape[1])):
                raise UsageError(
                    f"latents {tuple(given.shape)}: {n} images from layer {index + 1} need "
                    f"{(n, top.shape[1])}, or {(1, top.shape[1])} for all of them"
                )
            top = given.expand_as(top)
        with evaluation_mode(self):
            return self._image(self._descend(top, noise))

    def _descend(self, z: Tensor, noise: list[Tensor]) -> Tensor:
        """Latents of the lowest layer from those of a layer and the noise of the layers below it."""
        for i in reversed(range(len(noise))):
            p = self.priors[i](z)
            z = p.mean + torch.exp(0.5 * p.log_variance) * noise[i]
        return z

    def _image(self, z: Tensor) -> Tensor:
        output: Tensor = self.decoder(z)
        if self.likelihood == "bernoulli":
            return output.sigmoid()
        return output.chunk(2, dim=1)[0].clamp(0, 1)

    def _index(self, layer: int) -> int:
        if not isinstance(layer, int | np.integer) or not 1 <= layer <= len(self.layers):
            raise UsageError(
                f"layer={layer!r}: choose from 1, next to the image, to {len(self.layers)}"
            )
        return int(layer) - 1
