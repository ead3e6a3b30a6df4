"""Array types, factor kinds, number ranges, thresholds of activity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import NDArray

Kind = Literal["continuous", "ordinal", "categorical", "binary"]

SplitName = Literal["train", "validation", "test"]

UInt8Array = NDArray[np.uint8]

FloatArray = NDArray[np.float64]

IndexArray = NDArray[np.int64]

Do = Mapping[str, "float | FloatArray | Callable[[FloatArray], FloatArray]"]
"""An intervention: by name, a value, an array with one value per image, or a function of the old
values."""

MOST = 2**31 - 1
"""The largest count that torch accepts."""

Count = Annotated[int, Ge(1), Le(MOST)]

NonNegativeInt = Annotated[int, Ge(0), Le(MOST)]

Threads = Annotated[int, Ge(1), Le(1024)]

Positive = Annotated[float, Gt(0)]

NonNegative = Annotated[float, Ge(0)]

Share = Annotated[float, Ge(0), Lt(1)]

Probability = Annotated[float, Ge(0), Le(1)]

PositiveShare = Annotated[float, Gt(0), Le(1)]

ACTIVE_VARIANCE = 0.01
"""Variance over images above which a latent is active (Burda et al., 2016, section 5.2)."""

ACTIVE_NATS = 0.01
"""KL divergence from its prior above which a latent of a hierarchy is active."""
