"""Whether a Wasserstein autoencoder is what its theory asks for: independent codes, an injective decoder."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from disentwine.core.dataset import Dataset
from disentwine.core.score import Score
from disentwine.core.types import IndexArray
from disentwine.data.splits import evenly_spaced
from disentwine.losses.kernels import independence_test
from disentwine.nn.images import evaluation_mode
from disentwine.training.trainer import BatchSource

TESTED, DECODED = 500, 64
"""Images that are enough for the test, and for the decoder."""


@runtime_checkable
class HasExogenousLatents(Protocol):
    """A code of what labels do not say, and a decoder that should lose nothing of it."""

    def exogenous(self, x: Tensor, u: Tensor) -> Tensor:
        """f(x, u), (n, d) of images and their labels in their own units."""
        ...

    def injectivity(self, x: Tensor) -> Tensor:
        """The smallest singular value (n,) of the decoder's Jacobian at each image's code."""
        ...


def exogenous_scores(
    model: nn.Module, dataset: Dataset, indices: IndexArray, *, seed: int = 0
) -> list[Score]:
    """The p-value of f(X, U) and U being independent, their criterion, and the decoder's smallest
    singular value over images; nothing for models without such a code.

    Arguments:
        model: one with `exogenous` and `injectivity`.
        dataset: where images come from.
        indices: which to choose from; those with all labels are taken.
        seed: of the permutations.
    """
    labelled = indices[np.isfinite(dataset.factors[indices]).all(axis=1)]
    if not isinstance(model, HasExogenousLatents) or len(labelled) < 2:
        return []
    some = evenly_spaced(labelled, TESTED)
    batch = BatchSource.like(model, dataset).take(some)
    with evaluation_mode(model):
        code = model.exogenous(batch.x, batch.u)
        slopes = model.injectivity(batch.x[evenly_spaced(np.arange(len(some)), DECODED)])
    found = independence_test(code, batch.u, seed=seed)
    n = len(some)
    return [
        Score(
            "independence-p",
            found.p_value,
            n,
            details={"about": "how often codes and labels dealt at random seem as dependent"},
        ),
        Score(
            "independence-hsic",
            found.statistic,
            n,
            noise_floor=found.floor,
            details={
                "about": "dependence of codes on labels; the floor is that of independent ones"
            },
        ),
        Score(
            "injectivity",
            slopes.min().item(),
            len(slopes),
            details={
                "about": "smallest singular value of the decoder's Jacobian over images; 0 loses a direction",
                "median": slopes.median().item(),
            },
        ),
    ]
