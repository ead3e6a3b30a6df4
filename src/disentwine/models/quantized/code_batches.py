"""Training plan of CT-VAE: stages of images, pairs and rollouts; batches of codes."""

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
"""Number of images encoded at a time."""

MAX_VALIDATION = 1024
"""Largest number of validation images or pairs."""


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
    """Training stages: images, then pairs, then rollouts.

    Arguments:
        model: a model with `actions`, `indices`, `latent_actions` and `match`.
        dataset: a data set with transitions.
        pretrain_steps: number of updates on images alone.
        joint: whether the autoencoder is trained on pairs as well. Otherwise codes are constant, and
            training pairs are pairs of codes.
        length: number of pairs in a rollout; 1 for no rollouts.
        from_step: first update on rollouts.
        sampled: number of pairs that the whole training samples.
    """
    table = transitions(dataset)
    if table.actions != model.actions:
        raise UsageError(
            f"the model's actions are {' '.join(model.actions)}, but those of the data set are "
            f"{' '.join(table.actions)}; build it with {type(model).__name__}.for_data"
        )
    train, validation = table.pairs["train"], table.pairs["validation"]
    if len(validation) == 0:
        raise DataError(
            "no two validation images differ by one step of one factor: give the data set more images"
        )

    def match_actions() -> None:
        x, y, action = validation[:MAX_VALIDATION].T
        model.match(dataset.images[x], dataset.images[y], action)

    # Validation uses rollouts in both stages, so that their losses are comparable.
    rollouts = Rollouts(validation).sample(
        validation[:MAX_VALIDATION], length=length, rng=np.random.default_rng(0)
    )
    batch = CodeBatches(model, train, joint=joint, sampled=sampled)

    def stage(name: str, start: int, sampler: Sampler) -> Stage:
        before_save = match_actions if model.latent_actions else None
        return Stage(name, start, sampler, rollouts, "actions", batch, before_save)

    pairs = Pairs(train, start=pretrain_steps)
    stages = []
    if pretrain_steps:
        held_out = evenly_spaced(dataset.split["validation"], MAX_VALIDATION)
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
    """Warnings if training ends before a stage begins.

    Arguments:
        options: training options.
        first_steps: by name of a model option, its value and the consequence.
    """
    return [
        f"training.steps={options.steps} is not more than model.{name}={value}: {consequence}"
        for name, (value, consequence) in first_steps.items()
        if options.steps <= value
    ]


class CodeBatches:
    """Batches of pairs or rollouts, as images or as constant codes.

    If training samples each image more than once, the codes of all images are computed once. In either
    case batches depend on the weights and the step alone, so that resumed training is exact.

    Arguments:
        model: the model that encodes images.
        pairs: (m, 3) the training pairs.
        joint: whether the autoencoder is trained as well, so that batches always hold images.
        sampled: number of pairs that the whole training samples.
    """

    def __init__(self, model: Any, pairs: IndexArray, *, joint: bool, sampled: int) -> None:
        self.model, self.pairs, self.joint, self.sampled = model, pairs, joint, sampled
        self.table: Tensor | None = None

    def __call__(self, indices: IndexArray, images: ImageSource, step: int = 0) -> Batch:
        """The batch of pairs (n, 3) or rollouts (n, 3 * length)."""
        x, *targets = indices[:, 0], *indices[:, 1::3].T
        actions = torch.from_numpy(indices[:, 2::3].T.copy()).to(images.device)
        # Validation encodes images, so that it measures the whole model.
        if self.joint or not torch.is_grad_enabled():
            first, *others = (images.take(part, step=step) for part in (x, *targets))
            after = [other.x for other in others]
        else:
            codes, *after = torch.split(self._codes(np.concatenate([x, *targets]), images), len(x))
            u = images.factors.index_select(0, torch.from_numpy(x.copy()))
            first = Batch(codes, u.to(actions.device), step)
        later = tuple(zip(after[1:], actions[1:], strict=True))
        return first._replace(y=after[0], action=actions[0], later=later)

    def _codes(self, indices: IndexArray, images: ImageSource) -> Tensor:
        if self.table is None and self.cache_codes:
            self.table = self._encode_all(images)
        if self.table is not None:
            rows = torch.from_numpy(indices).to(self.table.device)
            return self.table.index_select(0, rows).long()
        return self._encode(indices, images)

    @cached_property
    def cache_codes(self) -> bool:
        """Whether images are sampled more than once on average."""
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
