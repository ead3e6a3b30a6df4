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


def unfinished_warm_up(
    steps: int, warm_up_steps: int | None, *, start: float | None = None, end: float = 1.0
) -> list[str]:
    """A warning where a training ends before its warm-up of the KL divergence does.

    >>> unfinished_warm_up(100, 200)[0][:67]
    'training.steps=100 are fewer than model.warm_up_steps=200: the weig'
    >>> unfinished_warm_up(100, None)
    []
    """
    if steps >= (warm_up_steps or 0):
        return []
    outcome = (
        "never falls to its last value" if (start or 0) > end else "never reaches its full value"
    )
    return [
        f"training.steps={steps} are fewer than model.warm_up_steps={warm_up_steps}: the weight of "
        f"the KL divergence {outcome}; give more steps, or a shorter warm-up"
    ]
