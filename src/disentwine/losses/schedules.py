"""Schedules of weights and targets as functions of the training step."""

from __future__ import annotations


def linear(step: int, *, start: float | None = None, end: float, steps: int | None) -> float:
    """Linear schedule from `start` to `end` over `steps` updates, then constant.

    As a KL weight from 0 to 1 it is the deterministic warm-up of C. Sonderby et al., 2016; as a target
    of the KL divergence it is the capacity C of C. Burgess et al., 2018, eq. 8.

    Arguments:
        step: training step.
        start: value at step 0; 0 when omitted.
        end: final value.
        steps: length of the ramp; when 0 or None the value is always `end`.

    >>> [linear(step, start=0.0, end=4.0, steps=100) for step in (0, 25, 100, 500)]
    [0.0, 1.0, 4.0, 4.0]
    >>> linear(25, end=4.0, steps=100)
    1.0
    """
    start = start or 0.0
    if steps is None or step >= steps:
        return end
    return start + (end - start) * step / steps
