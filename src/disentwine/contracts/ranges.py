"""Number ranges for constructor arguments; the recipe schema reads and enforces them."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt

MOST = 2**31 - 1
"""What torch takes for a number of things; nobody has memory for as many."""

Count = Annotated[int, Ge(1), Le(MOST)]
NonNegativeInt = Annotated[int, Ge(0), Le(MOST)]
Threads = Annotated[int, Ge(1), Le(1024)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Lt(1)]
Probability = Annotated[float, Ge(0), Le(1)]
PositiveShare = Annotated[float, Gt(0), Le(1)]
