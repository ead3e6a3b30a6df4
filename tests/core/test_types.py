"""Ranges of numbers refuse what lies outside, and their ends where they are open."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from disentwine.core.types import (
    Count,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveShare,
    Probability,
    Share,
    Threads,
)


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (Count, (1, 2**31 - 1), (0, -1, 2**31)),
        (NonNegativeInt, (0, 2**31 - 1), (-1, 2**31)),
        (Threads, (1, 1024), (0, 1025)),
        (Positive, (1e-30,), (0.0, -1.0)),
        (NonNegative, (0.0,), (-1e-30,)),
        (Share, (0.0, 0.999), (-0.1, 1.0)),
        (Probability, (0.0, 1.0), (-0.1, 1.1)),
        (PositiveShare, (1e-9, 1.0), (0.0, 1.1)),
    ],
)
def test_numbers_in_range_are_accepted_and_others_refused(
    kind: Any, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    assert [adapter.validate_python(value) for value in inside] == list(inside)
    for value in outside:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)
