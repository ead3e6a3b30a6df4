"""Scores as JSON: plain values, and None for what is not a finite number."""

from __future__ import annotations

import json

import numpy as np
import pytest

from disentwine.core.score import Score, plain, to_json


def test_a_score_is_written_as_plain_values() -> None:
    details = {"about": "error", "matrix": np.array([[1.0, np.inf]]), "best": np.int64(3)}
    content = to_json(Score("mse", float("nan"), n=5, details=details))
    assert json.loads(json.dumps(content, allow_nan=False)) == {
        "name": "mse",
        "value": None,
        "n": 5,
        "noise_floor": None,
        "details": {"about": "error", "matrix": [[1.0, None]], "best": 3},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, -np.inf), [1, None]),
        ({"a": (np.float32(0.5), {"b": np.nan})}, {"a": [0.5, {"b": None}]}),
        (np.array(2), 2),
        (np.bool_(True), True),
        ("nan", "nan"),
        (None, None),
    ],
)
def test_values_inside_values_are_plain_too(value, expected) -> None:
    assert plain(value) == expected
