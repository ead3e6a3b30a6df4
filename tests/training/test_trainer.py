"""A training that diverges stops before the update that would spoil its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from disentwine.core.model import Batch, Losses
from disentwine.core.random import fixed_noise
from disentwine.errors import DivergenceError
from disentwine.models import MODELS, VAE
from disentwine.runs.checkpoint import checkpoint_path, load_checkpoint
from disentwine.runs.run import load_run

BREAKS = 6


class Broken(VAE):
    """Goes wrong at one step, in one way; remembers its weights as they were before."""

    way = "term"

    def loss(self, batch: Batch) -> Losses:
        losses = super().loss(batch)
        if not self.training or batch.step != BREAKS:
            return losses
        self.before = {name: value.clone() for name, value in self.state_dict().items()}
        terms = dict(losses.terms)
        if self.way == "gradient":
            # Zero with a slope of zero times infinity, which is not a number.
            terms["kl"] = terms["kl"] + (self.encoder[1].bias.sum() * 0).sqrt()
        else:
            terms["kl"] = terms["kl"] * {"term": torch.nan, "infinity": torch.inf}[self.way]
        return Losses(terms, losses.weights)


class BrokenInValidation(VAE):
    def loss(self, batch: Batch) -> Losses:
        losses = super().loss(batch)
        if self.training or self.seen < 2:
            self.seen += not self.training
            return losses
        return Losses({**losses.terms, "kl": losses.terms["kl"] * torch.nan}, losses.weights)

    seen = 0


@pytest.fixture
def broken(pictures: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def broken(cls: type[VAE] = Broken, **attributes: Any) -> Any:
        monkeypatch.setitem(MODELS, "broken", cls)
        with fixed_noise(0):
            model = cls.for_data(pictures, latent=2)
        for name, value in attributes.items():
            setattr(model, name, value)
        return model

    return broken


@pytest.mark.parametrize(
    ("way", "culprit"),
    [("term", "'kl'"), ("infinity", "'kl'"), ("gradient", "'encoder.1.bias'")],
)
@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_the_update_is_not_made(
    way: str, culprit: str, clip_norm: float | None, tmp_path: Path, train: Any, broken: Any
) -> None:
    out = tmp_path / "run"
    model = broken(way=way)
    with pytest.raises(DivergenceError) as caught:
        train(out, model=model, clip_norm=clip_norm)
    message = str(caught.value)
    last = checkpoint_path(out / "checkpoints", 4)
    for part in (f"step {BREAKS}", culprit, "no update was made", "learning_rate", str(last)):
        assert part in message
    assert "\n" not in message
    for name, value in model.state_dict().items():
        assert torch.equal(value, model.before[name])
    assert load_checkpoint(last).step == 4
    run = load_run(out, which="last")
    assert run.checkpoint.step == 4
    assert not run.finished
    assert all(value.isfinite().all() for value in run.checkpoint.weights.values())


def test_only_the_culprit_is_named(train: Any, broken: Any) -> None:
    with pytest.raises(DivergenceError) as caught:
        train(None, model=broken(way="term"))
    assert "'reconstruction'" not in str(caught.value)
    assert "'loss'" not in str(caught.value)
    assert "checkpoint" not in str(caught.value)


def test_weights_that_fail_validation_are_not_saved(
    tmp_path: Path, train: Any, broken: Any
) -> None:
    out = tmp_path / "run"
    with pytest.raises(
        DivergenceError, match=r"validation loss.*'kl'; nothing was saved.*step-00000004"
    ):
        train(out, model=broken(BrokenInValidation))
    assert load_run(out, which="last").checkpoint.step == 4


@pytest.mark.parametrize("learning_rate", [1e3, 1e30])
def test_a_million_times_too_fast(learning_rate: float, tmp_path: Path, train: Any) -> None:
    out = tmp_path / "run"
    with pytest.raises(DivergenceError, match="no longer finite"):
        train(out, learning_rate=learning_rate, steps=200, save_every=1)
    run = load_run(out)
    assert all(value.isfinite().all() for value in run.model.state_dict().values())


def test_a_diverged_run_diverges_again_at_the_same_step(
    tmp_path: Path, train: Any, broken: Any
) -> None:
    messages = set()
    for _ in range(2):
        with pytest.raises(DivergenceError) as caught:
            train(tmp_path / "run", model=broken(way="term"))
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_clipping_bounds_the_step(train: Any, build: Any) -> None:
    start = build().state_dict()

    def moved(**options: Any) -> float:
        model = train(None, steps=1, learning_rate=1e-3, **options)
        return sum(float((v - start[k]).abs().sum()) for k, v in model.state_dict().items())

    # Adam's epsilon makes the size of a vanishing gradient matter.
    assert moved(clip_norm=1e-12) < 0.01 * moved()
