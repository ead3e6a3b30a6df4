"""What learning a graph checks and prepares first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from disentwine.contracts.dataset import FloatArray
from disentwine.errors import DataError, UsageError

FEWEST_ROWS = 30


def checked_labels(labels: ArrayLike, names: Sequence[str]) -> FloatArray:
    """The rows (n, k) that carry every label, or an error that says what is wrong with them.

    >>> checked_labels([[1.0, float("nan")]] + [[i, -i] for i in range(40)], ("a", "b")).shape
    (40, 2)
    """
    try:
        table = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"labels must be a table of numbers: {error}") from error
    if table.ndim != 2:
        raise UsageError(f"labels must be a table (n, k); got shape {table.shape}")
    if table.shape[1] != len(names):
        raise UsageError(f"labels has {table.shape[1]} columns and names has {len(names)}")
    if not len(names):
        raise UsageError("labels has no columns; a graph needs at least one")
    for name, column in zip(names, table.T, strict=True):
        if np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            raise DataError(
                f"labels: '{name}' is infinite in row {row}; correct it or leave it NaN"
            )
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < FEWEST_ROWS:
        raise DataError(
            f"labels: {len(complete)} of {len(table)} rows carry every label; "
            f"at least {FEWEST_ROWS} are needed"
        )
    for name, column in zip(names, complete.T, strict=True):
        if np.ptp(column) <= 1e-12 * np.abs(column).max():
            raise DataError(
                f"labels: '{name}' has one value only; leave it out, nothing can be learnt of it"
            )
    return complete
