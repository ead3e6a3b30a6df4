"""Training plans: stages, their samplers and batches; warnings about a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from torch import Tensor, device

from disentwine.core.types import IndexArray

if TYPE_CHECKING:
    from disentwine.core.model import Batch


class Sampler(Protocol):
    """Which images, or pairs of images, make a batch: a function of its arguments alone."""

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """The indices of one batch, with a row for each sample.

        Arguments:
            step: updates made before in the whole training, not in this stage.
            batch_size: most samples of the batch.
            seed: of the training.
            stream: batches of different streams are independent.
        """
        ...


class ImageSource(Protocol):
    """Images and factors of a data set by index, on the device of the model.

    Attributes:
        device: where batches go.
        factors: (n, k) the factor table.
    """

    device: device
    factors: Tensor

    def take(self, indices: IndexArray, *, step: int = 0) -> Batch:
        """The images and factors of some indices (n,)."""
        ...


MakeBatch = Callable[[IndexArray, ImageSource, int], "Batch"]
"""Makes a batch of what a sampler returned, the images, and the number of the update."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One phase of a training: what its batches hold, and what its validations look at.

    Arguments:
        name: such as "images" or "pairs".
        start: its first update, counted from 0.
        train: the sampler of the training batches.
        validation: indices, a row for each sample.
        scored_as: stages of the same text have comparable scores. Where it changes, the best score
            and the average of the weights start again.
        batch: makes a batch of indices; by default of the images and factors at these indices.
        before_save: called after a validation of this stage, before the checkpoint is saved, while
            the model has the weights that are kept.
    """

    name: str
    start: int
    train: Sampler
    validation: IndexArray
    scored_as: str = ""
    batch: MakeBatch | None = None
    before_save: Callable[[], None] | None = None


class TrainingSettings(Protocol):
    """What a model may check about a training (`training.options.TrainingOptions`)."""

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
    """A warning where a training ends before the warm-up of the KL divergence does.

    Arguments:
        options: of the training.
        warm_up_steps: updates over which the weight of the KL divergence changes.
        start: its first value; 0 if none is given.
        end: its last value.
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
