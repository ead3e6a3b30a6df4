"""What a model wants watched is logged beside its losses, and resuming repeats it to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disentwine.core.capabilities import capabilities
from disentwine.core.random import fixed_noise
from disentwine.figures import loss_curves
from disentwine.models import MODELS, VAE
from disentwine.runs.run import load_run


class ShowsItsWeights(VAE):
    def log_scalars(self) -> dict[str, float]:
        weights = {name.replace(".", "-"): p.sum().item() for name, p in self.named_parameters()}
        return dict(list(weights.items())[:2])


@pytest.fixture
def shows(pictures: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ShowsItsWeights]:
    monkeypatch.setitem(MODELS, "shows-its-weights", ShowsItsWeights)

    def build() -> ShowsItsWeights:
        with fixed_noise(0):
            return ShowsItsWeights.for_data(pictures, latent=2)

    return build


def test_it_is_logged_at_the_start_and_at_every_interval(
    tmp_path: Path, train: Any, shows: Any, build: Any
) -> None:
    assert "logs scalars" in capabilities(shows())
    assert "logs scalars" not in capabilities(build())
    first = shows().log_scalars()
    train(tmp_path / "run", model=shows())
    records = load_run(tmp_path / "run").metrics
    seen = [r for r in records if r["kind"] == "watched"]
    assert [r["step"] for r in seen] == [0, 3, 6, 9, 12]
    assert seen[0] == {"kind": "watched", "step": 0, **first}
    values = [r[next(iter(first))] for r in seen]
    assert len(set(values)) == len(values)
    assert [axes.get_title(loc="left") for axes in loss_curves(records).axes] == [
        "total loss",
        "reconstruction",
        "kl",
    ]


def test_a_resumed_training_has_the_same_log(
    tmp_path: Path, train: Any, shows: Any, fingerprint: Any, after_update: Any
) -> None:
    train(tmp_path / "whole", model=shows())

    def fail() -> None:
        raise KeyError

    after_update({2: fail, 7: fail, 10: fail})
    for _ in range(3):
        with pytest.raises(KeyError):
            train(tmp_path / "broken", model=shows())
    train(tmp_path / "broken", model=shows())
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "whole")
