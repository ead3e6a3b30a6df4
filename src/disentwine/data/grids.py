"""Tables of every combination of some factors' values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from disentwine.contracts.dataset import FloatArray


def every_combination(*values: Iterable[float]) -> FloatArray:
    """(n, k) all combinations of the values of k factors, the last factor changing fastest.

    >>> every_combination([0, 1], [5, 6]).tolist()
    [[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]]
    """
    axes = [np.fromiter(axis, np.float64) for axis in values]
    table = np.empty((*map(len, axes), len(axes)))
    for i, axis in enumerate(np.ix_(*axes)):
        table[..., i] = axis
    return table.reshape(-1, len(axes))
