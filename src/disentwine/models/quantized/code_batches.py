"""Batches of pairs, for models that learn actions: of images, or of the codes that stand for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine.core.capabilities import LearnsActions
from disentwine.core.model import Batch
from disentwine.core.types import IndexArray
from disentwine.data.samplers.pairs import PairSplit
from disentwine.training.batch_source import BatchSource

CHUNK = 256
"""Images encoded at once."""


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
        x, *ends = indices[:, 0], *indices[:, 1::3].T
        actions = torch.from_numpy(indices[:, 2::3].T.copy()).to(self.images.device)
        if self.model.joint or not self._learning():
            first, *others = (self.images.take(side, step=step) for side in (x, *ends))
            made = [other.x for other in others]
        else:
            codes, *made = torch.split(self._codes(np.concatenate([x, *ends])), len(x))
            u = self.images.factors.index_select(0, torch.from_numpy(x.copy()))
            first = Batch(codes, u.to(actions.device), step)
        later = tuple(zip(made[1:], actions[1:], strict=True))
        return first._replace(y=made[0], action=actions[0], later=later)

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
