"""`check_model` holds a model's discriminator to the contract as well."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from disentwine.core.capabilities import DiscriminatorTraining, capabilities
from disentwine.core.model import Batch, Losses, Model
from disentwine.losses.adversarial import discriminator_loss, generator_loss, gradient_penalty
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images
from disentwine.testing import check_model

SHAPE = (8, 8, 1)


class Duel(Model):
    """A linear autoencoder whose codes are to pass for normal noise."""

    def __init__(self, *, image_shape: ImageShape) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 64), nn.Unflatten(1, (1, 8, 8)))
        self.discriminator: nn.Module = nn.Sequential(
            nn.Linear(3, 5), nn.Softplus(), nn.Linear(5, 1)
        )
        self.discriminator_training = DiscriminatorTraining()

    def judge(self, z: Tensor) -> Tensor:
        logits: Tensor = self.discriminator(z)
        return logits[:, 0]

    def loss(self, batch: Batch) -> Losses:
        z = self.encoder(batch.x)
        error = (batch.x - self.decoder(z)).square().flatten(1).sum(1)
        return Losses({"error": error, "passing": generator_loss(self.judge(z))})

    def discriminator_loss(self, batch: Batch) -> Losses:
        z = self.encoder(batch.x)
        noise = torch.randn_like(z)
        told_apart = discriminator_loss(self.judge(noise), self.judge(z))
        return Losses({"told_apart": told_apart, "slope": gradient_penalty(self.judge, noise)})

    @accepts_images
    def represent(self, x: Tensor) -> Tensor:
        codes: Tensor = self.encoder(x)
        return codes

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        images: Tensor = self.decoder(self.encoder(x))
        return images.clamp(0, 1)


def test_an_opposed_model_keeps_the_contract() -> None:
    check_model(lambda: Duel(image_shape=SHAPE), image_shape=SHAPE)
    assert capabilities(Duel(image_shape=SHAPE)) == ("adversarial",)


class NoDiscriminator(Duel):
    def __init__(self, *, image_shape: ImageShape) -> None:
        super().__init__(image_shape=image_shape)
        self.rival = self.discriminator
        del self.discriminator

    def judge(self, z: Tensor) -> Tensor:
        logits: Tensor = self.rival(z)
        return logits[:, 0]


class LearnsNothing(Duel):
    def __init__(self, *, image_shape: ImageShape) -> None:
        super().__init__(image_shape=image_shape)
        self.discriminator.requires_grad_(False)


class NeverUpdated(Duel):
    def __init__(self, *, image_shape: ImageShape) -> None:
        super().__init__(image_shape=image_shape)
        self.discriminator_training = DiscriminatorTraining(updates=0)


class TakesAName(Duel):
    def loss(self, batch: Batch) -> Losses:
        terms = super().loss(batch).terms
        return Losses({"error": terms["error"], "discriminator_loss": terms["passing"]})


class IdleDiscriminator(Duel):
    """Its last layer's bias moves both logits alike, which a difference does not feel."""

    def discriminator_loss(self, batch: Batch) -> Losses:
        z = self.encoder(batch.x)
        return Losses({"gap": self.judge(z) - self.judge(torch.randn_like(z))})


class TrainedByTheOther(Duel):
    """An encoder that only the discriminator's loss would train."""

    def loss(self, batch: Batch) -> Losses:
        z = self.encoder(batch.x).detach()
        return Losses({"error": (batch.x - self.decoder(z)).square().flatten(1).sum(1)})


class WrongShape(Duel):
    def discriminator_loss(self, batch: Batch) -> Losses:
        return Losses({"codes": self.discriminator(self.encoder(batch.x))})


class BrokenWithoutGradients(Duel):
    """Differentiates inside its loss, which validation does not allow for."""

    def discriminator_loss(self, batch: Batch) -> Losses:
        noise = torch.randn(len(batch.x), 3, dtype=batch.x.dtype, requires_grad=True)
        (slope,) = torch.autograd.grad(self.judge(noise).sum(), noise, create_graph=True)
        return Losses({**super().discriminator_loss(batch).terms, "own": slope.square().sum(1)})


class WrongSlope(Duel):
    def discriminator_loss(self, batch: Batch) -> Losses:
        terms = super().discriminator_loss(batch).terms
        return Losses({"told_apart": terms["told_apart"] * terms["told_apart"].detach()})


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (NoDiscriminator, "has no submodule 'discriminator'"),
        (LearnsNothing, "the discriminator has no parameters"),
        (NeverUpdated, "the discriminator is never updated"),
        (TakesAName, r"\['discriminator_loss'\] are named like the discriminator's"),
        (
            IdleDiscriminator,
            "the gradient of the parameter 'discriminator.2.bias' is zero everywhere",
        ),
        (TrainedByTheOther, "no gradient reaches the parameter 'encoder.1.weight'"),
        (WrongShape, r"the discriminator's loss term 'codes' of 3 images has shape \(3, 1\)"),
        (WrongSlope, "the discriminator's loss term 'told_apart' differs from finite differences"),
    ],
)
def test_a_broken_promise_is_named(mutant: type[Duel], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_model(lambda: mutant(image_shape=SHAPE), image_shape=SHAPE)


def test_losses_are_asked_for_without_gradients_too() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        check_model(lambda: BrokenWithoutGradients(image_shape=SHAPE), image_shape=SHAPE)
