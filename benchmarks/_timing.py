"""The usual training loop and step counting of the training benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def count_steps(update: Callable[[], None], seconds: float) -> tuple[int, float]:
    """Repeat an update for some seconds; returns the number of updates and the seconds they took."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        update()
        steps += 1
    return steps, time.perf_counter() - start


def usual_update(
    model: Any, images: Any, *, batch: int, learning_rate: float, drop_last: bool = False
) -> Callable[[], None]:
    """One update of a common training loop: shuffling DataLoader with 2 workers, default Adam.

    Arguments:
        model: a model of the package.
        images: (n, channels, height, width) float tensor.
        batch: its size.
        learning_rate: of Adam.
        drop_last: whether the last, smaller batch of an epoch is left out.
    """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from disentwine.core.model import Batch

    loader = DataLoader(
        TensorDataset(images), batch_size=batch, shuffle=True, num_workers=2, drop_last=drop_last
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    batches: Any = iter(())

    def update() -> None:
        nonlocal batches
        try:
            (x,) = next(batches)
        except StopIteration:
            batches = iter(loader)
            (x,) = next(batches)
        loss = model.loss(Batch(x, torch.zeros(len(x), 0))).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return update
