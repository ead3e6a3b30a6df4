"""What a metric answers: a number, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Score:
    """One measured number.

    Arguments:
        name: such as "reconstruction-error".
        value: the number, in natural units.
        n: how many images it was measured on.
        noise_floor: what the same estimator answers where there is nothing to find.
        details: what else a reader may want: "about", "unit", and a metric's own.

    >>> Score("sap", 0.61, n=1000, noise_floor=0.02).value
    0.61
    """

    name: str
    value: float
    n: int
    noise_floor: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
