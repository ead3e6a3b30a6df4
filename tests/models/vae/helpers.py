"""Small models, batches and losses of the same noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from disentwine.core.model import Batch, Losses, Model
from disentwine.core.random import fixed_noise

SHAPE = (16, 16, 1)


def batch(u: Tensor | None = None) -> Batch:
    torch.manual_seed(1)
    return Batch(torch.rand(8, 1, 16, 16), torch.zeros(8, 0) if u is None else u)


def build(cls: type[Model], **options: Any) -> Any:
    torch.manual_seed(0)
    return cls(image_shape=SHAPE, **options)


def informative(cls: type[Model], **options: Any) -> Any:
    """A model whose codes differ between images, unlike those of a new one."""
    model = build(cls, **options)
    with torch.no_grad():
        model.encoder[-1].weight[: model.latent] *= 1000
        model.encoder[-1].weight[model.latent :] *= 100
    return model


def losses(model: Model, given: Batch | None = None) -> Losses:
    given = given or batch()
    with fixed_noise(2):
        return model.loss(given)


def as_numbers(given: Losses) -> dict[str, float]:
    return {name: term.mean().item() for name, term in given.terms.items()}
