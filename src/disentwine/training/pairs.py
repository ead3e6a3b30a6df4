"""Batches of pairs, for models that learn actions: of images, or of the codes that stand for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine.contracts.capabilities import LearnsActions
from disentwine.contracts.dataset import Dataset, IndexArray
from disentwine.contracts.model import Batch
from disentwine.data.splits import spread
from disentwine.data.transitions import transitions
from disentwine.errors import DataError
from disentwine.training.sampling import BatchSource, batch_indices

MOST_VALIDATION = 1024
"""Images, or pairs, that a validation looks at."""
CHUNK = 256


class PairSplit:
    """A split of images first and of pairs after `pretraining` steps.

    Arguments:
        images: (n,) indices.
        pairs: (m, 3) indices of x and of y, and the action.
        pretraining: steps.

    >>> split = PairSplit(np.arange(4), np.array([[0, 1, 0], [1, 0, 1]]), pretraining=1)
    >>> [split.batch(step=step, batch_size=2, seed=0).shape for step in (0, 1)]
    [(2,), (2, 3)]
    """

    def __init__(self, images: IndexArray, pairs: IndexArray, *, pretraining: int) -> None:
        self.images, self.pairs, self.pretraining = images, pairs, pretraining

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, *, step: int, batch_size: int, seed: int, stream: int = 0) -> IndexArray:
        """Images (n,) or pairs (n, 3) of one step, a function of its arguments alone."""
        early = step < self.pretraining
        return batch_indices(
            self.images if early else self.pairs,
            step=step if early else step - self.pretraining,
            batch_size=batch_size,
            seed=seed,
            stream=stream if early else stream + 2,
        )

    def learnt(self, *, steps: int) -> IndexArray:
        """What the last of so many updates learnt from: images (n,) or pairs (m, 3)."""
        return self.images if learns_images(steps, pretraining=self.pretraining) else self.pairs


def learns_images(steps: int, *, pretraining: int) -> bool:
    """Whether the last of so many updates learnt images, before pairs; at the start, the first.

    >>> [learns_images(steps, pretraining=2) for steps in range(4)]
    [True, True, True, False]
    """
    return max(steps - 1, 0) < pretraining


def pair_splits(dataset: Dataset, *, pretraining: int) -> dict[str, Any]:
    """What a model that learns actions is trained and validated on."""
    pairs = transitions(dataset).pairs
    if len(pairs["validation"]) == 0:
        raise DataError(
            "no two validation images differ by one step of one factor: give the data set more images"
        )
    return {
        "train": PairSplit(dataset.split["train"], pairs["train"], pretraining=pretraining),
        "validation": PairSplit(
            spread(dataset.split["validation"], MOST_VALIDATION),
            pairs["validation"][:MOST_VALIDATION],
            pretraining=pretraining,
        ),
    }


class PairSource:
    """Batches by index: of images, of pairs of images, or of pairs of codes that stay as they are.

    Codes are computed once for all images where a training looks at each more than once. Either
    way they depend on nothing but the weights and the step, so that a resumed run goes on exactly.

    Arguments:
        images: where images come from.
        model: whose codes are learnt from.
        split: of the training.
        drawn: pairs that the whole training draws.
    """

    def __init__(
        self, images: BatchSource, model: LearnsActions, split: Any, *, drawn: int
    ) -> None:
        self.images, self.model, self.drawn = images, model, drawn
        none = np.empty((0, 3), np.int64)
        self.pairs = split.pairs if isinstance(split, PairSplit) else none
        self.table: Tensor | None = None

    def take(self, indices: IndexArray, *, step: int = 0) -> Batch:
        if indices.ndim == 1:
            return self.images.take(indices, step=step)
        x, y, action = indices.T
        what = torch.from_numpy(action.copy()).to(self.images.device)
        if self.model.joint or not self._learning():
            first, second = (self.images.take(side, step=step) for side in (x, y))
            return first._replace(y=second.x, action=what)
        codes = self._codes(np.concatenate([x, y]))
        u = self.images.factors.index_select(0, torch.from_numpy(x.copy()))
        return Batch(codes[: len(x)], u.to(what.device), step, codes[len(x) :], what)

    def _learning(self) -> bool:
        """Whether this is an update; validations see images, so that they measure all there is."""
        return torch.is_grad_enabled()

    def _codes(self, indices: IndexArray) -> Tensor:
        if self.table is None and self.worth_a_table:
            self.table = self._encode_all()
        if self.table is not None:
            where = torch.from_numpy(indices).to(self.table.device)
            return self.table.index_select(0, where).long()
        return self._encode(indices)

    @cached_property
    def worth_a_table(self) -> bool:
        """Whether images are looked at more than once; counted once, there may be millions of pairs."""
        return len(np.unique(self.pairs[:, :2])) <= 2 * self.drawn

    def _encode_all(self) -> Tensor:
        used = np.unique(self.pairs[:, :2])
        chunks = [used[i : i + CHUNK] for i in range(0, len(used), CHUNK)]
        codes = torch.cat([self._encode(chunk).int() for chunk in chunks])
        table = codes.new_zeros(len(self.images.factors), codes.shape[1])
        table[torch.from_numpy(used).to(codes.device)] = codes
        return table

    def _encode(self, indices: IndexArray) -> Tensor:
        model: Any = self.model
        was_training = model.training
        model.eval()
        try:
            codes: Tensor = model.indices(self.images.take(indices).x)
        finally:
            model.train(was_training)
        return codes
