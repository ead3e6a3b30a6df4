"""What training saw of a concept, as data tell it or, where they are not at hand, the model."""

from types import SimpleNamespace
from typing import Any

import pytest

from disentwine.report.ranges import kept_labels, training_range


def model(**kept: Any) -> Any:
    return SimpleNamespace(concept_names=("colour", "size"), **kept)


def test_a_model_tells_what_it_keeps_of_its_labels() -> None:
    keeps = model(
        label_values=(("red", "green", "blue"), (2.0, 9.0)),
        label_mean=(1.0, 5.0),
        label_scale=(1.0, 1.0),
    )
    assert training_range(keeps, None, "colour") == (0.0, 2.0)
    assert training_range(keeps, None, "size") == (2.0, 9.0)
    assert kept_labels(keeps, "colour") == ("red", "green", "blue")


@pytest.mark.parametrize("kept", [{}, {"label_values": ()}])
def test_older_models_keep_only_mean_and_scale(kept: dict[str, Any]) -> None:
    older = model(label_mean=(1.0, 5.0), label_scale=(1.0, 2.0), **kept)
    assert training_range(older, None, "size") == (1.0, 9.0)
    assert kept_labels(older, "size") == ()
    assert training_range(model(**kept), None, "size") == (-3.0, 3.0)
