"""The training plan of CT-VAE: images, pairs, rollouts; batches of codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Batch
from disentwine.core.plan import ImageSource, Sampler, Stage, TrainingSettings
from disentwine.core.types import IndexArray
from disentwine.data.samplers.pairs import Pairs, RolloutPairs, Rollouts
from disentwine.data.samplers.shuffled import Shuffled
from disentwine.data.transitions import transitions
from disentwine.errors import DataError, UsageError
from disentwine.nn.images import evaluation_mode

CHUNK = 256
"""Images encoded at once."""

MOST_VALIDATION = 1024
"""Most images, or pairs, of a validation."""


def pair_stages(
    model: Any,
    dataset: Dataset,
    *,
    pretrain_steps: int,
    joint: bool,
    length: int,
    from_step: int,
    sampled: int,
) -> tuple[Stage, ...]:
    """Images first, then pairs, and rollouts from a step on.

    Arguments:
        model: has `actions` and `indices`, and `nameless` and `match` for latent actions.
        dataset: images whose factors take steps.
        pretrain_steps: updates on images alone.
        joint: whether images are learned further with the pairs. Otherwise their codes do not change,
            and training pairs are pairs of codes.
        length: pairs in a rollout; 1 for none.
        from_step: first update on rollouts.
        sampled: pairs that the whole training samples.
    """
    table = transitions(dataset)
    if table.actions != model.actions:
        raise UsageError(
            f"the model's actions are {' '.join(model.actions)}, and the data set's "
            f"{' '.join(table.actions)}; build it with {type(model).__name__}.for_data"
        )
    train, validation = table.pairs["train"], table.pairs["validation"]
    if len(validation) == 0:
        raise DataError(
            "no two validation images differ by one step of one factor: give the data set more images"
        )

    def match_actions() -> None:
        x, y, action = validation[:MOST_VALIDATION].T
        model.match(dataset.images[x], dataset.images[y], action)

    # Rollouts also while pairs are learned: or the scores before and after would be of
    # different losses.
    rollouts = Rollouts(validation).sample(
        validation[:MOST_VALIDATION], length=length, rng=np.random.default_rng(0)
    )
    batch = CodeBatches(model, train, joint=joint, sampled=sampled)

    def stage(name: str, start: int, sampler: Sampler) -> Stage:
        before_save = match_actions if model.nameless else None
        return Stage(name, start, sampler, rollouts, "actions", batch, before_save)

    pairs = Pairs(train, start=pretrain_steps)
    stages = []
    if pretrain_steps:
        held_out = evenly_spaced(dataset.split["validation"], MOST_VALIDATION)
        stages.append(Stage("images", 0, Shuffled(dataset.split["train"]), held_out, "images"))
    if length == 1 or from_step > pretrain_steps:
        stages.append(stage("pairs", pretrain_steps, pairs))
    if length > 1:
        start = max(pretrain_steps, from_step)
        stages.append(stage("rollouts", start, RolloutPairs(pairs, length=length)))
    return tuple(stages)


def too_few_steps(
    options: TrainingSettings, first_steps: Mapping[str, tuple[int, str]]
) -> list[str]:
    """Warnings where a training ends before a stage begins.

    Arguments:
        options: of the training.
        first_steps: for the name of a model's option, its value and what is missed.
    """
    return [
        f"training.steps={options.steps} is not more than model.{name}={value}: {missed}"
        for name, (value, missed) in first_steps.items()
        if options.steps <= value
    ]


class CodeBatches:
    """Batches of pairs or rollouts: of images, or of codes that do not change.

    Codes are computed once for all images where a training samples each more than once. Either way
    they depend on the weights and the step alone, so that a resumed training continues exactly.

    Arguments:
        model: whose codes are learned from.
        pairs: (m, 3) the training pairs.
        joint: whether the autoencoder is trained further, so that batches are always of images.
        sampled: pairs that the whole training samples.
    """

    def __init__(self, model: Any, pairs: IndexArray, *, joint: bool, sampled: int) -> None:
        self.model, self.pairs, self.joint, self.sampled = model, pairs, joint, sampled
        self.table: Tensor | None = None

    def __call__(self, indices: IndexArray, images: ImageSource, step: int = 0) -> Batch:
        """The batch of pairs (n, 3) or rollouts (n, 3 * length)."""
        x, *ends = indices[:, 0], *indices[:, 1::3].T
        actions = torch.from_numpy(indices[:, 2::3].T.copy()).to(images.device)
        # Validations encode images, so that they measure the whole model.
        if self.joint or not torch.is_grad_enabled():
            first, *others = (images.take(side, step=step) for side in (x, *ends))
            after = [other.x for other in others]
        else:
            codes, *after = torch.split(self._codes(np.concatenate([x, *ends]), images), len(x))
            u = images.factors.index_select(0, torch.from_numpy(x.copy()))
            first = Batch(codes, u.to(actions.device), step)
        later = tuple(zip(after[1:], actions[1:], strict=True))
        return first._replace(y=after[0], action=actions[0], later=later)

    def _codes(self, indices: IndexArray, images: ImageSource) -> Tensor:
        if self.table is None and self.worth_a_table:
            self.table = self._encode_all(images)
        if self.table is not None:
            where = torch.from_numpy(indices).to(self.table.device)
            return self.table.index_select(0, where).long()
        return self._encode(indices, images)

    @cached_property
    def worth_a_table(self) -> bool:
        """Whether images are sampled more than once; cached, as there may be millions of pairs."""
        return len(np.unique(self.pairs[:, :2])) <= 2 * self.sampled

    def _encode_all(self, images: ImageSource) -> Tensor:
        used = np.unique(self.pairs[:, :2])
        chunks = [used[i : i + CHUNK] for i in range(0, len(used), CHUNK)]
        codes = torch.cat([self._encode(chunk, images).int() for chunk in chunks])
        table = codes.new_zeros(len(images.factors), codes.shape[1])
        table[torch.from_numpy(used).to(codes.device)] = codes
        return table

    def _encode(self, indices: IndexArray, images: ImageSource) -> Tensor:
        with evaluation_mode(self.model):
            codes: Tensor = self.model.indices(images.take(indices).x)
        return codes
