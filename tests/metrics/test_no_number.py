"""A ratio to nothing is no number, which JSON, tables and pages have to bear."""

import json
import math

import numpy as np
import pytest

from disentwine.cli._tables import print_comparison, print_scores
from disentwine.core.score import Score, to_json
from disentwine.metrics import counterfactual_scores
from disentwine.metrics.actions import intervention_scores
from disentwine.report.text import number

BLACK = np.zeros((2, 4, 4, 1), np.uint8)
GREY = BLACK + 100


def test_an_error_over_none_is_no_number() -> None:
    """Of reconstructions without an error, and of actions that change nothing."""
    ratio, share = counterfactual_scores(
        "light", predicted=GREY, truth=BLACK, factual=BLACK, reconstructed=BLACK
    )
    assert math.isnan(ratio.value)
    assert math.isnan(share.value)
    error, ratio, share = intervention_scores(
        predicted=GREY, truth=BLACK, before=BLACK, reconstructed=BLACK
    )
    assert error.value == pytest.approx((100 / 255) ** 2)
    assert math.isnan(ratio.value)
    assert math.isnan(share.value)


@pytest.mark.parametrize("nothing", [math.nan, math.inf, -math.inf, np.float32(math.nan)])
def test_json_has_none_for_what_is_no_number(nothing: float) -> None:
    details = {
        "spread": nothing,
        "floors": {"info_m": nothing},
        "errors": [0.5, (nothing,)],
        "matrix": np.array([[1.0, nothing]]),
        "alive": np.array([True, False]),
        "count": np.int64(3),
        "split": "test",
    }
    written = json.dumps(to_json(Score("a", nothing, 5, nothing, details)), allow_nan=False)
    assert json.loads(written) == {
        "name": "a",
        "value": None,
        "n": 5,
        "noise_floor": None,
        "details": {
            "spread": None,
            "floors": {"info_m": None},
            "errors": [0.5, [None]],
            "matrix": [[1.0, None]],
            "alive": [True, False],
            "count": 3,
            "split": "test",
        },
    }


def test_tables_have_a_dash_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [Score("ratio", math.nan, 5, math.nan), Score("share", 0.25, 5)]
    print_scores(scores, title="one")
    print_comparison({"mine": scores}, title="two")
    told = capsys.readouterr().out
    assert "nan" not in told
    assert told.count(" - ") == 3
    assert number(math.nan) == "-"
