"""Codes that are to follow a standard normal prior, by a discrepancy or against a discriminator."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from disentwine.contracts.capabilities import OpponentTraining
from disentwine.nn.perceptron import perceptron
from disentwine.objectives.adversarial import discriminator_loss, generator_loss
from disentwine.objectives.mmd import mmd

Divergence = Literal["mmd", "gan"]

HIDDEN_LAYERS = 4
BETAS = (0.5, 0.999)


def code_discriminator(latent: int, units: int) -> nn.Sequential:
    """Four hidden layers of so many units, from codes to the logit of being drawn from the prior.

    Reference: Wasserstein Auto-Encoders, I. Tolstikhin et al., 2018, appendix.

    >>> code_discriminator(3, 16)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """
    return perceptron([latent, *[units] * HIDDEN_LAYERS, 1])


def discriminator_training(learning_rate: float) -> OpponentTraining:
    """The discriminator's Adam."""
    return OpponentTraining(learning_rate, betas=BETAS)


def divergence_from_prior(codes: Tensor, discriminator: nn.Module | None) -> Tensor:
    """The maximum mean discrepancy from draws of the prior, (); or, with a discriminator, how far each
    code is from passing for one, (n,)."""
    if discriminator is None:
        return mmd(codes, torch.randn_like(codes))
    return generator_loss(discriminator(codes)[:, 0])


def telling_apart(codes: Tensor, discriminator: nn.Module) -> Tensor:
    """The cross-entropy (n,) of telling draws of the prior from codes."""
    drawn = torch.randn_like(codes)
    return discriminator_loss(discriminator(drawn)[:, 0], discriminator(codes)[:, 0])
