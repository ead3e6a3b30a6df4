"""Weights and targets that change as training goes on, as functions of the step."""

from __future__ import annotations


def linear(step: int, *, start: float | None = None, end: float, steps: int | None) -> float:
    """From `start` to `end` in a straight line over `steps` updates, then constant.

    With start 0 and end 1 this is the deterministic warm-up of C. Sonderby et al., 2016; as a target
    for the divergence it is the capacity C of C. Burgess et al., 2018, eq. 8.

    Without a start it begins at 0; without steps to take it is `end` throughout.

    >>> [linear(step, start=0.0, end=4.0, steps=100) for step in (0, 25, 100, 500)]
    [0.0, 1.0, 4.0, 4.0]
    >>> linear(25, end=4.0, steps=100)
    1.0
    """
    start = start or 0.0
    if steps is None or step >= steps:
        return end
    return start + (end - start) * step / steps
