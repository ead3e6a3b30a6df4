"""InfoGAN: a GAN with a network that infers its latents from images."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.types import Count, NonNegative, NonNegativeInt, Positive
from disentwine.losses.adversarial import discriminator_loss, generator_loss, lazy_gradient_penalty
from disentwine.nn.encoders import DECODERS, ENCODERS, ImageShape, Network
from disentwine.nn.images import accepts_images, as_latents, check_count


class InfoGAN(Model):
    r"""Information-maximising GAN, $\min_{G,Q} \max_D V(D, G) - \lambda L_I(G, Q)$ (eq. 6).

    The generator maps noise z and latents c to images, and
    $L_I = \mathbb{E} \log Q(c|x) + H(c) \le I(c; G(z, c))$ (eq. 5) is a bound of the mutual information.
    The latents (the paper's latent code) are continuous, uniform on [-1, 1] with Gaussian $Q(c|x)$, and
    optionally categorical with equal probabilities. The representation of an image is inferred by Q.
    Its reconstruction is generated from these latents without noise, as a GAN does not infer the noise.

    *Differences from the paper*: Q shares no features with D, so that neither loss trains the other
    network; the discriminator has an R1 gradient penalty (Mescheder et al., 2018)
    instead of batch normalisation.

    Reference: InfoGAN: Interpretable Representation Learning by Information Maximizing Generative
    Adversarial Nets, X. Chen et al., 2016.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: number of continuous latents.
        classes: number of classes of the categorical latent; 0 for none.
        noise: dimensions of z.
        information_weight: $\lambda$.
        slope_weight: weight of the R1 gradient penalty of the discriminator.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_learning_rate: learning rate of the discriminator.

    >>> model = InfoGAN(image_shape=(16, 16, 1), latent=3, classes=2)
    >>> model.represent(torch.rand(4, 1, 16, 16)).shape
    torch.Size([4, 5])
    """

    betas: ClassVar[tuple[float, float]] = (0.5, 0.99)

    not_in_weights = ("information_weight", "slope_weight", "discriminator_learning_rate")

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        latent: Count = 5,
        classes: NonNegativeInt = 0,
        noise: Count = 10,
        information_weight: NonNegative = 1.0,
        slope_weight: NonNegative = 1.0,
        network: Network = "compact",
        discriminator_learning_rate: Positive = 1e-3,
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.latent, self.classes, self.noise = latent, classes, noise
        self.information_weight, self.slope_weight = information_weight, slope_weight
        self.network = network
        self.discriminator_learning_rate = discriminator_learning_rate
        self.generator = DECODERS[network](latent + classes + noise, image_shape)
        self.Q = ENCODERS[network](image_shape, latent + classes)
        self.log_scale = nn.Parameter(torch.full((latent,), -1.0))
        self.discriminator = ENCODERS[network](image_shape, 1)
        self.discriminator_training = DiscriminatorTraining(discriminator_learning_rate, self.betas)

    for_data = ForData(__init__)

    def sample_inputs(self, n: int) -> tuple[Tensor, Tensor]:
        """Latents c (n, latent + classes), continuous ones first, and noise z (n, noise)."""
        like = self.log_scale
        c = [2 * torch.rand(n, self.latent, device=like.device, dtype=like.dtype) - 1]
        if self.classes:
            classes = torch.randint(self.classes, (n,), device=like.device)
            c.append(F.one_hot(classes, self.classes).to(like))
        z = torch.randn(n, self.noise, device=like.device, dtype=like.dtype)
        return torch.cat(c, dim=1), z

    def generate(self, c: Tensor, z: Tensor) -> Tensor:
        """G(z, c), (n, channels, height, width) in [0, 1]."""
        image: Tensor = self.generator(torch.cat([c, z], dim=1))
        return image.sigmoid()

    def discriminate(self, x: Tensor) -> Tensor:
        """Logit of the discriminator for real images, (n,)."""
        logits: Tensor = self.discriminator(x)
        return logits[:, 0]

    def information(self, c: Tensor, x: Tensor) -> Tensor:
        r"""Lower bound of the mutual information of latents and image, $\log Q(c|x) + H(c)$, (n,) nats."""
        (mean, logits), (continuous, classes) = self._split(self.Q(x)), self._split(c)
        scaled_error = 0.5 * ((continuous - mean) / self.log_scale.exp()).square() + self.log_scale
        bound: Tensor = self.latent * math.log(2) - (
            scaled_error + 0.5 * math.log(2 * math.pi)
        ).sum(1)
        if self.classes:
            bound = bound + (classes * logits.log_softmax(1)).sum(1) + math.log(self.classes)
        return bound

    def _split(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Split latents into continuous and categorical ones."""
        return c[:, : self.latent], c[:, self.latent :]

    def loss(self, batch: Batch) -> Losses:
        """Losses of the generator and Q."""
        c, z = self.sample_inputs(len(batch.x))
        x = self.generate(c, z)
        return Losses(
            {
                "generator": generator_loss(self.discriminate(x)),
                "information": -self.information(c, x),
            },
            {"information": self.information_weight},
        )

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Losses of the discriminator."""
        fake = self.generate(*self.sample_inputs(len(batch.x)))
        cross_entropy = discriminator_loss(self.discriminate(batch.x), self.discriminate(fake))
        slope = lazy_gradient_penalty(self.discriminate, batch.x, step=batch.step)
        terms = {"cross_entropy": cross_entropy, "slope": slope}
        return Losses(terms, {"slope": self.slope_weight})

    def infer(self, x: Tensor) -> Tensor:
        """Means of the continuous latents and class probabilities, (n, latent + classes)."""
        mean, logits = self._split(self.Q(x))
        return torch.cat([mean, logits.softmax(1)], dim=1)

    @torch.no_grad()
    def decode(self, latents: Any) -> Tensor:
        """Images generated from latents without noise, (n, channels, height, width) in [0, 1].

        Arguments:
            latents: (n, latent + classes), an array or a tensor.
        """
        c = as_latents(latents, width=self.latent + self.classes, like=self.log_scale)
        return self.generate(c, c.new_zeros(len(c), self.noise))

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """Inferred latents of each image, (n, latent + classes)."""
        return self.infer(x)

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Images generated from the inferred latents, without noise."""
        return self.decode(self.infer(x))

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Generated images, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        return self.generate(*self.sample_inputs(n))
