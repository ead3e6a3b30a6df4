"""What hierarchies of latent layers share: the generative model, its bounds, and how it is used."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
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
from disentwine.nn.distributions import DiagonalGaussian, Likelihood
from disentwine.nn.encoders import ImageShape, Network
from disentwine.nn.images import accepts_images, as_codes, check_count, evaluation_mode
from disentwine.nn.ladder import (
    GaussianLayer,
    MeanCentred,
    deterministic,
    features_to_pixels,
    pixels_to_features,
    positive,
)

GREY_LEVEL = 1 / 255
"""The least standard deviation of a Gaussian pixel: pixels are rounded to it."""

Draw = Callable[[DiagonalGaussian], Tensor]
drawn: Draw = DiagonalGaussian.sample


def at_mean(q: DiagonalGaussian) -> Tensor:
    """The draw that is no draw."""
    return q.mean


class Level(NamedTuple):
    """One layer's latents z, drawn from their posterior q, and their prior p given the layer above."""

    z: Tensor
    q: DiagonalGaussian
    p: DiagonalGaussian

    @property
    def log_ratio(self) -> Tensor:
        r"""$\log q(z_i|\cdot) - \log p(z_i|z_{i+1})$ of each row."""
        q = gaussian_log_density(self.z, self.q.mean, self.q.log_variance)
        return (q - gaussian_log_density(self.z, self.p.mean, self.p.log_variance)).sum(1)


class HierarchicalModel(Model):
    r"""$p(z) = p(z_L) \prod_i p(z_i|z_{i+1})$, $p(z_L) = \mathcal{N}(0, I)$,
    $p(z_i|z_{i+1}) = \mathcal{N}(\mu_{p,i}(z_{i+1}), \sigma_{p,i}^2(z_{i+1}))$, and $p(x|z_1)$.

    A subclass says how z is inferred. Layers are counted as in the paper: 1 is next to the image, L
    is the top.

    A *code* is the posterior mean of all layers, bottom to top, in the coordinates in which the
    prior is a standard normal: $\epsilon_i = (z_i - \mu_{p,i}) / \sigma_{p,i}$, and $\epsilon_L = z_L$.
    A unit that only repeats what the layer above says has code 0, and a unit that is moved takes the
    layers below along. The latents themselves are `represent(x, layer=i)`.

    Reference: Ladder Variational Autoencoders, C. Sonderby et al., 2016, eq. 1-3.

    Arguments: as in `LadderVAE`.
    """

    not_in_weights = ("warm_up_steps",)

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        layers: tuple[Count, ...],
        hidden: tuple[Count, ...],
        depth: Count,
        batch_norm: bool,
        warm_up_steps: NonNegativeInt,
        importance_samples: Count,
        importance_from: NonNegativeInt,
        network: Network,
        likelihood: Likelihood,
    ) -> None:
        super().__init__()
        if not layers:
            raise UsageError("layers=[]: give at least one layer, such as [16,8]")
        if len(hidden) < len(layers):
            raise UsageError(
                f"hidden={list(hidden)} has {len(hidden)} widths, layers={list(layers)} are "
                f"{len(layers)}: give in hidden the width of the network below each layer"
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
        front, self._features = pixels_to_features(network, image_shape, hidden[0])
        self.front = MeanCentred(front, image_shape) if batch_norm else front
        self.priors = nn.ModuleList(
            self._gaussian(above, width, size)
            for above, width, size in zip(layers[1:], hidden[1:], layers, strict=False)
        )
        self.decoder = nn.Sequential(
            self._mlp(layers[0], hidden[0]),
            features_to_pixels(network, hidden[0], (height, columns, outputs)),
        )

    def check_training(self, options: TrainingSettings) -> list[str]:
        """Warnings where the training ends before the warm-up."""
        own = unfinished_warm_up(options, self.warm_up_steps)
        return [*own, *super().check_training(options)]

    @abstractmethod
    def infer(self, x: Tensor, *, samples: int = 1, draw: Draw = drawn) -> list[Level]:
        """Every layer's latents, bottom to top; all images, then all again, `samples` times."""

    def divergences(self, levels: list[Level]) -> list[Tensor]:
        r"""An unbiased estimate of each layer's $D_{KL}$, (rows,) nats each."""
        return [level.log_ratio for level in levels]

    def loss(self, batch: Batch) -> Losses:
        """The negative bound in nats, term by term: kl_1 of the lowest layer to kl_L of the top one."""
        beta = linear(batch.step, end=1.0, steps=self.warm_up_steps)
        samples = self.importance_samples if batch.step >= self.importance_from else 1
        levels = self.infer(batch.x, samples=samples)
        log_likelihood = self.log_likelihood(batch.x, levels[0].z)
        names = [f"kl_{i}" for i in range(1, len(levels) + 1)]
        kl = dict(zip(names, self.divergences(levels), strict=True))
        if samples == 1:
            return Losses({"reconstruction": -log_likelihood, **kl}, dict.fromkeys(kl, beta))
        log_weights = log_likelihood - beta * self._log_ratio(levels)
        bound = importance_weighted_bound(log_weights.view(-1, len(batch.x)))
        rows = {"reconstruction": -log_likelihood, **kl}
        watched = {name: row.detach().view(-1, len(batch.x)).mean(0) for name, row in rows.items()}
        return Losses({"bound": -bound, **watched}, dict.fromkeys(watched, 0.0))

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z_1)$ of rows of latents, which go over all images one or more times."""
        output = self.decoder(z)
        if len(z) != len(x):
            x = x.repeat(len(z) // len(x), 1, 1, 1)
        if self.likelihood == "bernoulli":
            return bernoulli_log_likelihood(x, output)
        mean, raw = output.chunk(2, dim=1)
        log_variance = (positive(raw) + GREY_LEVEL**2).log()
        return gaussian_log_density(x, mean, log_variance).flatten(1).sum(1)

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        r"""$\log p(x, z) - \log q(z|x)$ for `samples` draws of z from q, (samples, n)."""
        with evaluation_mode(self):
            levels = self.infer(x, samples=samples)
            log_weights = self.log_likelihood(x, levels[0].z) - self._log_ratio(levels)
        return log_weights.view(samples, len(x))

    def _log_ratio(self, levels: list[Level]) -> Tensor:
        return torch.stack([level.log_ratio for level in levels]).sum(0)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        r"""$q(\epsilon|x)$ of images, each layer given the means of those it follows from.

        Its divergence from a standard normal is $D_{KL}(q(z_i|\cdot) \,\|\, p(z_i|z_{i+1}))$.
        """
        levels = self.infer(x, draw=at_mean)
        means = [(q.mean - p.mean) * torch.exp(-0.5 * p.log_variance) for _, q, p in levels]
        log_variances = [q.log_variance - p.log_variance for _, q, p in levels]
        return DiagonalGaussian(torch.cat(means, dim=1), torch.cat(log_variances, dim=1))

    @accepts_images
    def unit_divergences(self, x: Tensor) -> Tensor:
        r"""$D_{KL}(q(z_{ik}|\cdot) \,\|\, p(z_{ik}|z_{i+1}))$ of each unit k of each layer i, bottom to
        top, (n, units) nats: along one draw of z an image, as the bound has it, not along means.

        It is 0 where a unit repeats what the layer above expects. Of a ladder, its sum over a layer
        is on average the layer's term of the bound; of bottom-up inference it is not, as there
        $z_{i+1}$ depends on $z_i$, but it is 0 for the same units.
        """
        levels = self.infer(x)
        return torch.cat(
            [
                kl_between_gaussians(q.mean, q.log_variance, p.mean, p.log_variance)
                for _, q, p in levels
            ],
            dim=1,
        )

    @property
    def unit_layers(self) -> tuple[int, ...]:
        """Which layer each number of a code belongs to."""
        return tuple(i for i, size in enumerate(self.layers, start=1) for _ in range(size))

    @accepts_images
    def represent(self, x: Tensor, layer: int | None = None) -> Tensor:
        r"""The code $\epsilon$ of each image, or the posterior mean of $z_i$ for one layer i."""
        if layer is None:
            return self.posterior(x).mean
        return self.infer(x, draw=at_mean)[self._index(layer)].q.mean

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image decoded from its posterior mean, in the form it was given."""
        return self._image(self.infer(x, draw=at_mean)[0].z)

    def decode(self, codes: ArrayLike | Tensor, layer: int | None = None) -> Tensor:
        r"""The mean image of each code; or of latents $z_i$ of one layer, those below at their mean.

        Arguments:
            codes: (n, d), an array or a tensor, as `represent` has them.
            layer: the one that they are of; all layers where none is given.
        """
        weight = next(self.parameters())
        with evaluation_mode(self):
            if layer is not None:
                i = self._index(layer)
                z = as_codes(
                    codes, width=self.layers[i], like=weight, what=f"codes of layer {i + 1}"
                )
                return self._image(self._descend(z, [z.new_zeros(())] * i))
            z = as_codes(codes, width=sum(self.layers), like=weight)
            *below, top = torch.split(z, list(self.layers), dim=1)
            return self._image(self._descend(top, below))

    def sample(
        self, n: int, *, layer: int | None = None, codes: ArrayLike | Tensor | None = None
    ) -> Tensor:
        """Images drawn from the prior; or from given latents of one layer down.

        Arguments:
            n: how many.
            layer: the layer that `codes` are of; the top one where none is given.
            codes: (n or 1, size) latents of that layer, as `represent(x, layer=i)` has them; drawn from
                the prior where none are given.
        """
        check_count(n)
        if codes is None and layer is not None:
            raise UsageError(f"layer={layer}: also give that layer's codes to start from")
        index = self._index(len(self.layers) if layer is None else layer)
        weight = next(self.parameters())
        noise = [weight.new_empty(n, size).normal_() for size in self.layers[: index + 1]]
        top = noise.pop()
        if codes is not None:
            given = torch.as_tensor(codes).to(weight)
            if tuple(given.shape) not in ((n, top.shape[1]), (1, top.shape[1])):
                raise UsageError(
                    f"codes {tuple(given.shape)}: {n} images of layer {index + 1} need "
                    f"{(n, top.shape[1])}, or {(1, top.shape[1])} for all of them"
                )
            top = given.expand_as(top)
        with evaluation_mode(self):
            return self._image(self._descend(top, noise))

    def _descend(self, z: Tensor, noise: list[Tensor]) -> Tensor:
        """The lowest layer's latents from those of a layer and the noise of each one below it."""
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
