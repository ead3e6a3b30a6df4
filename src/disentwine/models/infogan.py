"""InfoGAN: a generator some of whose inputs can be read off its images."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, ForData, Losses, Model
from disentwine.core.types import Count, NonNegative, NonNegativeInt, Positive
from disentwine.losses.adversarial import discriminator_loss, generator_loss, lazy_slope_penalty
from disentwine.nn.encoders import DECODERS, ENCODERS, ImageShape, Network
from disentwine.nn.images import accepts_images, as_codes, check_count


class InfoGAN(Model):
    r"""$\min_{G,Q} \max_D V(D, G) - \lambda L_I(G, Q)$ (eq. 6) for a generator of images from noise z and a
    code c, with $L_I = \mathbb{E} \log Q(c|x) + H(c) \le I(c; G(z, c))$ (eq. 5).

    The code is numbers uniform on [-1, 1], with Gaussian $Q(c|x)$, and one of some classes, all alike.
    What Q reads off an image is its representation; its reconstruction is the image of that code
    without noise, since a GAN does not infer the noise.
    *What differs from the paper*: Q is a network of its own and shares no features with D, so that
    neither loss trains the other's; the discriminator pays for its slope (Mescheder et al., 2018) in
    place of batch normalisation.

    Reference: InfoGAN: Interpretable Representation Learning by Information Maximizing Generative
    Adversarial Nets, X. Chen et al., 2016.

    Arguments:
        image_shape: (height, width, channels); `for_data` reads it from the data set.
        latent: numbers in the code.
        classes: of the categorical part of the code; 0 for none.
        noise: dimensions of z.
        information_weight: $\lambda$.
        slope_weight: of the penalty that keeps the discriminator flat at true images.
        network: "compact", "normed", "standard" or "mlp".
        discriminator_learning_rate: of the discriminator's Adam.

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

    def draw(self, n: int) -> tuple[Tensor, Tensor]:
        """Codes (n, latent + classes), numbers first, and noise (n, noise)."""
        like = self.log_scale
        code = [2 * torch.rand(n, self.latent, device=like.device, dtype=like.dtype) - 1]
        if self.classes:
            chosen = torch.randint(self.classes, (n,), device=like.device)
            code.append(F.one_hot(chosen, self.classes).to(like))
        z = torch.randn(n, self.noise, device=like.device, dtype=like.dtype)
        return torch.cat(code, dim=1), z

    def paint(self, c: Tensor, z: Tensor) -> Tensor:
        """G(z, c), (n, channels, height, width) in [0, 1]."""
        image: Tensor = self.generator(torch.cat([c, z], dim=1))
        return image.sigmoid()

    def discriminate(self, x: Tensor) -> Tensor:
        """The logit of images being true, (n,)."""
        logits: Tensor = self.discriminator(x)
        return logits[:, 0]

    def information(self, c: Tensor, x: Tensor) -> Tensor:
        r"""$\log Q(c|x) + H(c)$, (n,) nats: a lower bound of what images tell of their codes."""
        (mean, logits), (numbers, classes) = self._parts(self.Q(x)), self._parts(c)
        surprise = 0.5 * ((numbers - mean) / self.log_scale.exp()).square() + self.log_scale
        bound: Tensor = self.latent * math.log(2) - (surprise + 0.5 * math.log(2 * math.pi)).sum(1)
        if self.classes:
            bound = bound + (classes * logits.log_softmax(1)).sum(1) + math.log(self.classes)
        return bound

    def _parts(self, code: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers and classes."""
        return code[:, : self.latent], code[:, self.latent :]

    def loss(self, batch: Batch) -> Losses:
        """What generator and Q minimise."""
        c, z = self.draw(len(batch.x))
        x = self.paint(c, z)
        return Losses(
            {
                "generator": generator_loss(self.discriminate(x)),
                "information": -self.information(c, x),
            },
            {"information": self.information_weight},
        )

    def discriminator_loss(self, batch: Batch) -> Losses:
        """What the discriminator minimises."""
        painted = self.paint(*self.draw(len(batch.x)))
        told_apart = discriminator_loss(self.discriminate(batch.x), self.discriminate(painted))
        slope = lazy_slope_penalty(self.discriminate, batch.x, step=batch.step)
        return Losses({"cross_entropy": told_apart, "slope": slope}, {"slope": self.slope_weight})

    def read(self, x: Tensor) -> Tensor:
        """The code of images: the means of its numbers, and the probability of each class."""
        mean, logits = self._parts(self.Q(x))
        return torch.cat([mean, logits.softmax(1)], dim=1)

    @torch.no_grad()
    def decode(self, codes: Any) -> Tensor:
        """The image of each code without noise, (n, channels, height, width) in [0, 1].

        Arguments:
            codes: (n, latent + classes), an array or a tensor.
        """
        c = as_codes(codes, width=self.latent + self.classes, like=self.log_scale)
        return self.paint(c, c.new_zeros(len(c), self.noise))

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        """What each image says of its code, (n, latent + classes)."""
        return self.read(x)

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image painted from the code that it says it has, without noise."""
        return self.decode(self.read(x))

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """New images, (n, channels, height, width) in [0, 1]."""
        check_count(n)
        return self.paint(*self.draw(n))
