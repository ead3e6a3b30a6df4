"""Options in groups are checked, reported and identified like single options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from disentwine.core.schema import check, non_defaults, schema_of
from disentwine.core.types import Count, NonNegative


@dataclass(frozen=True, kw_only=True)
class Tray:
    rows: Count
    gap: NonNegative = 1.0


@dataclass(frozen=True)
class Heat:
    degrees: Count = 180


def bake(*, minutes: int = 5, heat: Heat = Heat(), tray: Tray | None = None) -> None: ...  # noqa: B008


SCHEMA = schema_of(bake)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tray": {"gap": 2}}, "oven.tray.rows: missing; give a value"),
        ({"tray": {"rows": 2, "gab": 2}}, "oven.tray.gab: unknown key. Did you mean 'gap'?"),
        ({"degrees": 200}, "oven.degrees: unknown key. Did you mean 'heat.degrees'?"),
        ({"heat": {"degrees": True}}, "oven.heat: expected a number for degrees, got"),
        ({"heat": Heat(-1)}, "oven.heat.degrees: input should be greater than or equal to 1"),
        ({"tray": {"rows": 2, "gap": float("inf")}}, "oven.tray.gap: input should be a finite"),
    ],
)
def test_a_wrong_option_of_a_group_is_named_with_its_group(given: Any, problem: str) -> None:
    values, problems = check(SCHEMA, given, section="oven")
    assert values == {}
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"heat": {"degrees": 180}, "tray": None}, {}),
        ({"heat": {"degrees": np.int64(200)}}, {"heat": {"degrees": 200}}),
        ({"tray": {"rows": 3}}, {"tray": {"rows": 3}}),
        ({"tray": Tray(rows=3, gap=2.0)}, {"tray": {"rows": 3, "gap": 2.0}}),
    ],
)
def test_only_options_of_a_group_that_differ_are_written(given: Any, written: Any) -> None:
    """Also of one that is off by default: an option that is added to it later changes nothing."""
    values, problems = check(SCHEMA, given, section="oven")
    assert not problems
    assert non_defaults(SCHEMA, values) == written
