"""Who trains which parameters: a model all of its own, its opponent the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import nn

from disentwine.contracts.capabilities import Opposed

OPPONENT = "opponent"
"""The submodule that a model plays against, and what its terms' names in a log begin with."""


def opponent_parameters(model: nn.Module) -> list[nn.Parameter]:
    """What `opponent_loss` trains; nothing where the model has no opponent."""
    if not isinstance(model, Opposed):
        return []
    return [p for p in model.get_submodule(OPPONENT).parameters() if p.requires_grad]


def own_parameters(model: nn.Module) -> list[nn.Parameter]:
    """What `loss` trains: all parameters but the opponent's."""
    foreign = set(opponent_parameters(model))
    return [p for p in model.parameters() if p.requires_grad and p not in foreign]


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Let no gradient reach some parameters, though it may pass through them.

    >>> import torch
    >>> layer, x = nn.Linear(2, 1), torch.zeros(1, 2, requires_grad=True)
    >>> with frozen(layer.parameters()): layer(x).sum().backward()
    >>> layer.weight.grad is None, x.grad is None, layer.weight.requires_grad
    (True, False, True)
    """
    touched = [p for p in parameters if p.requires_grad]
    for parameter in touched:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in touched:
            parameter.requires_grad_(True)
