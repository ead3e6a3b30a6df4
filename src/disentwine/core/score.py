"""`Score`, one measured number, and its JSON form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Score:
    """One measured number.

    Arguments:
        name: such as "reconstruction-error".
        value: the number, in natural units.
        n: number of images.
        noise_floor: chance level: the same estimator where there is no effect, such as on shuffled
            latents.
        details: "about", "unit", and others that depend on the metric.

    >>> Score("sap", 0.61, n=1000, noise_floor=0.02).value
    0.61
    """

    name: str
    value: float
    n: int
    noise_floor: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def to_json(score: Score) -> dict[str, object]:
    """A score as JSON-compatible values: arrays as nested lists, NaN and infinity as None."""
    return {name: plain(value) for name, value in vars(score).items()}


def plain(value: Any) -> Any:
    """A value that JSON can represent: lists for arrays, None for NaN and infinity.

    >>> plain({"matrix": np.array([[0.5, np.nan]]), "error": np.inf})
    {'matrix': [[0.5, None]], 'error': None}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
