"""A moving average of a model's weights, which does better than the last ones for the same updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

MOST = 100
"""Moments within N updates at which weights are looked at: more make no better average, only time."""


class Average:
    r"""$\bar\theta_t = \bar\theta_{t-1} + \frac{1}{\min(t, N)} (\theta_t - \bar\theta_{t-1})$: the plain
    mean of the first N updates, then one that forgets all but about the last N.

    Where N is large, t counts every N/100th update, and the first of them is the first that shows.
    Running statistics of batch normalisation are averaged as weights are; whole numbers are taken as
    they are.

    Reference: Acceleration of stochastic approximation by averaging, B. Polyak and A. Juditsky, 1992.

    Arguments:
        model: whose weights.
        updates: N.

    >>> model = nn.Linear(1, 1)
    >>> average = Average(model, updates=2)
    >>> for t, value in enumerate((1.0, 3.0, 4.0), start=1):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     average.follow(t)
    >>> average.weights["weight"].item()  # (1 + 3) / 2, then half way to 4
    3.0
    """

    def __init__(self, model: nn.Module, *, updates: int) -> None:
        self.model, self.updates = model, updates
        self.every = max(1, updates // MOST)
        self.weights = {name: value.clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Take in the weights as they are after update number `step`, counted from 1."""
        if step % self.every:
            return
        current = self.model.state_dict()
        real = [name for name, value in current.items() if value.is_floating_point()]
        torch._foreach_lerp_(
            [self.weights[name] for name in real],
            [current[name] for name in real],
            self.every / min(step, self.updates),
        )
        for name in current.keys() - real:
            self.weights[name].copy_(current[name])

    @contextmanager
    def worn(self) -> Iterator[None]:
        """The model has the average inside, and its own weights again outside.

        Whole numbers that change inside, such as which name an action was found to have, belong to
        the average.
        """
        own = {name: value.clone() for name, value in self.model.state_dict().items()}
        _put(self.weights, into=self.model)
        try:
            yield
        finally:
            for name, value in self.model.state_dict().items():
                if not value.is_floating_point():
                    self.weights[name].copy_(value)
            _put(own, into=self.model)


def _put(weights: Mapping[str, Tensor], *, into: nn.Module) -> None:
    with torch.no_grad():
        for name, value in into.state_dict().items():
            value.copy_(weights[name])
