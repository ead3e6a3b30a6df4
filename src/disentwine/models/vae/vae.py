"""VAE, and the base class of VAEs with one layer of Gaussian latents."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.plan import TrainingSettings, unfinished_warm_up
from disentwine.core.types import Count, NonNegativeInt
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.losses.schedules import linear
from disentwine.nn.encoders import (
    DECODERS,
    ENCODERS,
    DiagonalGaussian,
    ImageShape,
    Likelihood,
    Network,
    log_noise_scale,
    mean_pixels,
    pixel_log_likelihood,
)
from disentwine.nn.images import accepts_images, as_latents, check_count
from disentwine.nn.inactive_latents import reset_inactive


class LatentModel(Model):
    r"""Posterior $q(z|x) = \mathcal{N}(\mu(x), \sigma^2(x))$, prior $\mathcal{N}(0, I)$ and $p(x|z)$.

    Subclasses add the `loss` of their paper. The Gaussian decoder has one noise scale for all pixels.

    Arguments:
        image_shape: (height, width, channels).
        latent: number of latent dimensions.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: distribution of pixels, "bernoulli" or "gaussian".
    """

    def __init__(
        self, image_shape: ImageShape, *, latent: int, network: Network, likelihood: Likelihood
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.latent = latent
        self.network = network
        self.likelihood = likelihood
        self.encoder = ENCODERS[network](image_shape, 2 * latent)
        self.decoder = DECODERS[network](latent, image_shape)
        self.log_scale = log_noise_scale(likelihood)

    def posterior(self, x: Tensor) -> DiagonalGaussian:
        """Posterior $q(z|x)$ of images (n, channels, height, width)."""
        return DiagonalGaussian.from_features(self.encoder(x))

    def reconstruction_log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        r"""$\log p(x|z)$, (n,) nats."""
        return pixel_log_likelihood(x, self.decoder(z), self.log_scale)

    @torch.no_grad()
    def reset_inactive_latents(self, x: Tensor, *, most: int | None = None) -> tuple[int, ...]:
        """Re-initialise latents that are inactive on images; returns their indices.

        Arguments:
            x: (n, channels, height, width) images.
            most: largest number of latents to re-initialise; all inactive ones when omitted.
        """
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        inactive = reset_inactive(encoder[-1], decoder[0], encoder[:-1](x), most=most)
        return tuple(inactive.tolist())

    @torch.no_grad()
    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        r"""Log importance weights $\log p(x|z) + \log p(z) - \log q(z|x)$, (samples, n), z from q."""
        q = self.posterior(x)
        epsilon = torch.randn(samples, *q.mean.shape, device=x.device, dtype=q.mean.dtype)
        z = q.mean + torch.exp(0.5 * q.log_variance) * epsilon
        repeated = x.expand(samples, *x.shape).flatten(0, 1)
        log_likelihood = self.reconstruction_log_likelihood(repeated, z.flatten(0, 1))
        # The normalising constants of p(z) and q(z|x) cancel.
        log_ratio = 0.5 * (epsilon.square() + q.log_variance - z.square()).sum(-1)
        return log_likelihood.view(samples, len(x)) + log_ratio

    @torch.no_grad()
    def decode(self, latents: Any) -> Tensor:
        """Mean images decoded from latents, (n, channels, height, width) in [0, 1].

        Arguments:
            latents: (n, latent), an array or a tensor.
        """
        z = as_latents(latents, width=self.latent, like=next(self.parameters()))
        return mean_pixels(self.decoder(z), self.log_scale)

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Posterior mean of each image, (n, latent)."""
        return self.posterior(x).mean

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Images decoded from the posterior means, in the format of the input."""
        return self.decode(self.posterior(x).mean)

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        weight = next(self.parameters())
        return self.decode(torch.randn(n, self.latent, device=weight.device, dtype=weight.dtype))


class VAE(LatentModel):
    r"""Variational autoencoder: maximise $\mathbb{E}_{q(z|x)} \log p(x|z) - D_{KL}(q(z|x) \,\|\, p(z))$.

    Reference: Auto-Encoding Variational Bayes, D. Kingma and M. Welling, 2014, eq. 10.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of latent dimensions.
        network: "compact", "normed", "standard" or "mlp".
        likelihood: "bernoulli" or "gaussian" pixels.
        warm_up_steps: updates over which the weight of the KL divergence rises from 0 to 1.

    >>> import torch
    >>> vae = VAE(image_shape=(16, 16, 1), latent=4)
    >>> vae.loss(Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0))).terms["kl"].shape
    torch.Size([8])
    """

    not_in_weights = ("warm_up_steps",)

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 10,
        network: Network = "compact",
        likelihood: Likelihood = "bernoulli",
        warm_up_steps: NonNegativeInt = 0,
    ) -> None:
        super().__init__(
            image_shape=image_shape, latent=latent, network=network, likelihood=likelihood
        )
        self.warm_up_steps = warm_up_steps

    for_data = ForData(__init__)

    def check_training(self, options: TrainingSettings) -> list[str]:
        """A warning if training is shorter than the warm-up."""
        warnings = unfinished_warm_up(options, self.warm_up_steps)
        return [*warnings, *super().check_training(options)]

    def loss(self, batch: Batch) -> Losses:
        """The negative ELBO in nats."""
        q = self.posterior(batch.x)
        log_likelihood = self.reconstruction_log_likelihood(batch.x, q.sample())
        kl = kl_to_standard_normal(q.mean, q.log_variance).sum(1)
        weight = linear(batch.step, end=1.0, steps=self.warm_up_steps)
        return Losses({"reconstruction": -log_likelihood, "kl": kl}, {"kl": weight})
