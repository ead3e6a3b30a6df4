"""Which units of a code say something about the image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.core.score import Score
from disentwine.errors import UsageError

ALIVE = 0.01
"""The variance over images from which a unit counts as alive, as in the reference."""


def active_units(codes: NDArray[np.floating], *, discrete_codes: bool = False) -> Score:
    r"""The number of units $i$ with $\mathrm{Var}_x\big(\mathbb{E}[z_i|x]\big) > 0.01$.

    Of units that are names it is the variance of what one-hot stands for them, $1 - \sum_k p_k^2$.

    Reference: Importance Weighted Autoencoders, Y. Burda, R. Grosse and R. Salakhutdinov, 2016,
    section 5.2.

    Arguments:
        codes: (n, d), the mean code of each image.
        discrete_codes: codes are names, as those of a quantizer.

    >>> codes = np.stack([np.linspace(-1, 1, 9), np.zeros(9)], axis=1)
    >>> active_units(codes).value, active_units(codes).details["alive"]
    (1.0, [True, False])
    """
    if codes.ndim != 2 or len(codes) == 0:
        raise UsageError(f"codes must be a table (n, d) with at least one row; got {codes.shape}")
    variance = (
        np.array([_impurity(column) for column in codes.T])
        if discrete_codes
        else codes.var(axis=0, dtype=np.float64)
    )
    alive = variance > ALIVE
    return Score(
        "active-units",
        float(alive.sum()),
        n=len(codes),
        details={
            "about": f"of {codes.shape[1]}: units whose code varies by more than {ALIVE} over images",
            "alive": alive.tolist(),
        },
    )


def _impurity(names: NDArray[np.floating]) -> float:
    share = np.unique(names, return_counts=True)[1] / len(names)
    return float(1 - np.square(share).sum())
