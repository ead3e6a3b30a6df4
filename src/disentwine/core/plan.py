"""Training plans: stages, samplers, batches, and warnings about warm-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torch import Tensor, device

from disentwine.core.types import IndexArray

if TYPE_CHECKING:
    from disentwine.core.model import Batch


class Sampler(Protocol):
    """Samples batches of indices; each batch depends on the arguments alone."""

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The indices of one batch, one row per sample.

        Arguments:
            step: number of updates before, counted over all stages.
            batch_size: largest number of samples in the batch.
            seed: training seed.
            stream: batches of different streams are independent.
        """
        ...


class ImageSource(Protocol):
    """Images and factors of a data set by index, on the device of the model.

    Attributes:
        device: device of the batches.
        factors: (n, k) the factor table.
    """

    device: device
    factors: Tensor

    def take(self, indices: IndexArray, *, step: int = 0) -> Batch:
        """The images and factors of some indices (n,)."""
        ...


MakeBatch = Callable[[IndexArray, ImageSource, int], "Batch"]
"""Builds a batch from sampled indices, the images, and the step."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of training: its sampler, its batches and its validation samples.

    Arguments:
        name: such as "images" or "pairs".
        start: first step, counted from 0.
        train: sampler of the training batches.
        validation: indices of the validation samples, one row per sample.
        scored_as: label of the validation loss. Losses of stages with the same label are comparable;
            at a new label the best loss and the average of the weights are reset.
        batch: builds a batch from indices; by default the images and factors at these indices.
        before_save: called after validation and before the checkpoint is saved, while the model has
            the weights to be saved.
    """

    name: str
    start: int
    train: Sampler
    validation: IndexArray
    scored_as: str = ""
    batch: MakeBatch | None = None
    before_save: Callable[[], None] | None = None


class TrainingSettings(Protocol):
    """Training options that models can check (`training.options.TrainingOptions`)."""

    @property
    def steps(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def patience(self) -> int | None: ...


def unfinished_warm_up(
    options: TrainingSettings,
    warm_up_steps: int | None,
    *,
    start: float | None = None,
    end: float = 1.0,
) -> list[str]:
    """A warning if training is shorter than the warm-up of the KL divergence.

    Arguments:
        options: training options.
        warm_up_steps: updates over which the weight of the KL divergence changes.
        start: initial weight; 0 when omitted.
        end: final weight.
    """
    if options.steps >= (warm_up_steps or 0):
        return []
    outcome = (
        "never falls to its last value" if (start or 0) > end else "never reaches its full value"
    )
    return [
        f"training.steps={options.steps} are fewer than model.warm_up_steps={warm_up_steps}: the weight "
        f"of the KL divergence {outcome}; give more steps, or a shorter warm-up"
    ]
