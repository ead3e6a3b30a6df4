"""Conditions of Wasserstein autoencoders: independent latents and an injective decoder."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.score import Score
from disentwine.core.types import IndexArray
from disentwine.losses.kernels import independence_test
from disentwine.nn.images import evaluation_mode
from disentwine.training.trainer import BatchSource

TESTED, DECODED = 500, 64
"""Images for the test, and for the decoder's Jacobian."""


@runtime_checkable
class HasExogenousLatents(Protocol):
    """The model infers exogenous latents, independent of the labels, and decodes them injectively."""

    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        """f(x, u), (n, d) of images and their labels in their own units."""
        ...

    def injectivity(self, x: Tensor) -> Tensor:
        """(n,) the smallest singular value of the decoder's Jacobian at each image's latents."""
        ...


def exogenous_scores(
    model: nn.Module, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """The p-value of a test that f(X, U) and U are independent, their HSIC, and the decoder's smallest
    singular value over images; none for models without exogenous latents.

    Arguments:
        model: one with `exogenous` and `injectivity`.
        dataset: where images come from.
        indices: images to choose from; those with all labels are taken.
        seed: of the permutations.
    """
    labelled = indices[np.isfinite(dataset.factors[indices]).all(axis=1)]
    if not isinstance(model, HasExogenousLatents) or len(labelled) < 2:
        return []
    some = evenly_spaced(labelled, TESTED)
    batch = BatchSource.like(model, dataset).take(some)
    with evaluation_mode(model):
        latents = model.exogenous(batch.x, batch.u)
        slopes = model.injectivity(batch.x[evenly_spaced(np.arange(len(some)), DECODED)])
    found = independence_test(latents, batch.u, seed=seed)
    n = len(some)
    return [
        Score(
            "independence-p",
            found.p_value,
            n,
            details={"about": "share of permutations of the labels with at least this dependence"},
        ),
        Score(
            "independence-hsic",
            found.statistic,
            n,
            noise_floor=found.floor,
            details={"about": "dependence of latents on labels; chance level by permutation"},
        ),
        Score(
            "injectivity",
            slopes.min().item(),
            len(slopes),
            details={
                "about": "smallest singular value of the decoder's Jacobian over images; 0 is not injective",
                "median": slopes.median().item(),
            },
        ),
    ]
