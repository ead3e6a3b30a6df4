"""A model and its discriminator are trained side by side, and neither disturbs the other."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from disentwine.core.capabilities import DiscriminatorTraining
from disentwine.core.model import Batch, Losses
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import CheckpointError, DivergenceError, Interrupted
from disentwine.models import MODELS, VAE, FactorVAE
from disentwine.runs.checkpoint import checkpoint_path, load_checkpoint, save_checkpoint
from disentwine.runs.fit import fit
from disentwine.runs.run import load_run
from disentwine.testing import small_grid
from disentwine.training.optimizers import discriminator_parameters, own_parameters
from disentwine.training.options import TrainingOptions
from disentwine.training.trainer import Trainer

BREAKS = 6
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "three turns": {"updates": 3},
    "clipped": {"clip_norm": 0.5},
    "falling learning rate": {"final_learning_rate": 1e-5},
    "shrinking weights": {"weight_decay": 0.5},
    "half precision": {"precision": "bf16-mixed", "updates": 2},
}


class Duel(FactorVAE):
    """Remembers what its discriminator was shown, and can be made to break at one step."""

    way = ""
    shown: list[torch.Tensor]
    before: dict[str, torch.Tensor]

    def discriminator_loss(self, batch: Batch) -> Losses:
        term = super().discriminator_loss(batch).terms["cross_entropy"]
        if self.training:
            self.shown.append(batch.x)
            if batch.step == BREAKS and self.way:
                self.before = {name: value.clone() for name, value in self.state_dict().items()}
                # Zero with a slope of zero times infinity, or nothing that is a number.
                bias = self.get_parameter("discriminator.0.bias")
                term = (
                    term + (bias.sum() * 0).sqrt() if self.way == "gradient" else term * torch.nan
                )
        return Losses({"cross_entropy": term})


@pytest.fixture
def duel(pictures: Arrays, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(MODELS, "duel", Duel)

    def duel(*, updates: int = 1, learning_rate: float = 1e-4, way: str = "") -> Duel:
        with fixed_noise(0):
            model = Duel.for_data(pictures, latent=2, discriminator_units=8)
        model.discriminator_training = DiscriminatorTraining(learning_rate, (0.5, 0.9), updates)
        model.way, model.shown = way, []
        return model

    return duel


@pytest.fixture
def trainer(pictures: Arrays) -> Any:
    def trainer(model: Any, **options: Any) -> Trainer:
        chosen = TrainingOptions(**{"steps": 10, "batch_size": 8, "device": "cpu", **options})
        with torch.random.fork_rng():
            return Trainer(model, pictures, chosen, seed=0)

    return trainer


def copies(parameters: list[torch.nn.Parameter]) -> list[torch.Tensor]:
    return [p.detach().clone() for p in parameters]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_resuming_is_exact(
    name: str, tmp_path: Path, train: Any, duel: Any, after_update: Any, fingerprint: Any
) -> None:
    options = dict(CONFIGURATIONS[name])
    updates = options.pop("updates", 1)
    whole = train(tmp_path / "whole", model=duel(updates=updates), **options)
    after_update({step: lambda: os.kill(os.getpid(), signal.SIGTERM) for step in (2, 7)})
    stops = 0
    while True:
        try:
            broken = train(tmp_path / "broken", model=duel(updates=updates), **options)
            break
        except Interrupted:
            stops += 1
    assert stops == 2
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "whole")
    for key, value in broken.state_dict().items():
        assert torch.equal(value, whole.state_dict()[key])


def test_a_checkpoint_holds_both_optimisers(tmp_path: Path, train: Any, duel: Any) -> None:
    model = train(tmp_path / "run", model=duel())
    checkpoint = load_checkpoint(checkpoint_path(tmp_path / "run/checkpoints", 13))
    for prefix, parameters in (
        ("adam.", own_parameters(model)),
        ("discriminator_adam.", discriminator_parameters(model)),
    ):
        moments = [v for k, v in checkpoint.training.items() if k.startswith(prefix)]
        moved = [v for v in moments if v.ndim or v == 13]
        assert len(moved) == len(moments) == 3 * len(parameters) > 0
    assert checkpoint.state["discriminator_optimiser"][0]["betas"] == [0.5, 0.9]


def test_without_an_discriminator_nothing_is_added_to_a_checkpoint(
    trainer: Any, build: Any
) -> None:
    checkpoint = trainer(build()).checkpoint()
    assert not [
        name for name in [*checkpoint.training, *checkpoint.state] if "discriminator" in name
    ]


def test_each_is_updated_by_its_own_loss_alone(trainer: Any, duel: Any) -> None:
    """One step of either is the same, whatever the learning rate of the other."""

    def after_one_step(own: float, discriminator: float) -> tuple[Any, Any, Any]:
        model = duel(learning_rate=discriminator)
        start = copies(own_parameters(model)), copies(discriminator_parameters(model))
        with torch.random.fork_rng():
            trainer(model, learning_rate=own).update()
        return copies(own_parameters(model)), copies(discriminator_parameters(model)), start

    own, discriminator, start = after_one_step(1e-3, 1e-4)
    assert not any(torch.equal(a, b) for a, b in zip(own, start[0], strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(discriminator, start[1], strict=True))
    with_fast_discriminator, other, _ = after_one_step(1e-3, 1e-2)
    assert same(own, with_fast_discriminator)
    assert not same(discriminator, other)
    other, with_fast_model, _ = after_one_step(1e-2, 1e-4)
    assert same(discriminator, with_fast_model)
    assert not same(own, other)


def test_parameters_are_as_learnable_after_an_update_as_before(trainer: Any, duel: Any) -> None:
    model = duel()
    model.decoder[0].bias.requires_grad_(False)
    kept = model.decoder[0].bias.clone()
    trainer(model).update()
    learnable = {name for name, p in model.named_parameters() if p.requires_grad}
    assert set(dict(model.named_parameters())) - learnable == {"decoder.0.bias"}
    assert torch.equal(kept, model.decoder[0].bias)


def test_an_discriminator_takes_its_turns_on_batches_of_its_own(trainer: Any, duel: Any) -> None:
    model = duel(updates=3)
    game = trainer(model)
    trained_on = []
    loss = model.loss
    model.loss = lambda batch: (trained_on.append(batch.x), loss(batch))[1]
    game.update()
    game.update()
    assert len(trained_on) == 2
    assert len(model.shown) == 6
    batches = [*trained_on, *model.shown]
    for i, first in enumerate(batches):
        assert not any(torch.equal(first, other) for other in batches[:i])
    steps = [s["step"] for s in game.losses[1].optimizer.state_dict()["state"].values()]
    assert set(map(int, steps)) == {6}


def test_learning_rates_fall_in_proportion(trainer: Any, duel: Any) -> None:
    game = trainer(duel(learning_rate=2e-4), learning_rate=1e-3, final_learning_rate=1e-4)
    for _ in range(6):
        game.update()
    own, discriminator = (p.optimizer.param_groups[0]["lr"] for p in game.losses)
    assert own == pytest.approx(1e-3 + (1e-4 - 1e-3) * 5 / 10)
    assert discriminator == pytest.approx(own * 0.2)


def test_weight_decay_shrinks_the_weights_of_the_model_alone(trainer: Any, duel: Any) -> None:
    plain, shrinking = trainer(duel()), trainer(duel(), weight_decay=20.0)
    own, shrunk = (list(own_parameters(game.model)) for game in (plain, shrinking))
    start = copies(own)
    for game in (plain, shrinking):
        with fixed_noise(0):
            game.update()
    assert {p.ndim > 1 for p in start} == {True, False}
    for before, after, less in zip(start, own, shrunk, strict=True):
        expected = after - 1e-3 * 20.0 * before if before.ndim > 1 else after
        torch.testing.assert_close(less, expected, rtol=1e-5, atol=1e-6)
    assert same(*(copies(game.losses[1].parameters) for game in (plain, shrinking)))


@pytest.mark.parametrize(
    ("way", "culprit"),
    [("term", "'discriminator_cross_entropy'"), ("gradient", "'discriminator.0.bias'")],
)
def test_neither_is_updated_when_the_discriminator_diverges(
    way: str, culprit: str, tmp_path: Path, train: Any, duel: Any
) -> None:
    model = duel(way=way)
    with pytest.raises(DivergenceError) as caught:
        train(tmp_path / "run", model=model)
    for part in (f"step {BREAKS}", culprit, "no update was made", "step-00000004"):
        assert part in str(caught.value)
    for name, value in model.state_dict().items():
        assert torch.equal(value, model.before[name])
    assert load_run(tmp_path / "run", which="last").checkpoint.step == 4


def test_the_discriminators_terms_are_in_the_log(tmp_path: Path, train: Any, duel: Any) -> None:
    train(tmp_path / "run", model=duel())
    for kind in ("train", "validation"):
        records = [r for r in load_run(tmp_path / "run").metrics if r["kind"] == kind]
        assert records
        for record in records:
            assert record["discriminator_loss"] == pytest.approx(
                record["discriminator_cross_entropy"]
            )
            assert record["loss"] != record["discriminator_loss"]


def test_the_last_weights_of_a_game_are_kept(trainer: Any, duel: Any, build: Any) -> None:
    for model, kept in ((duel(), 2.0), (build(), 1.0)):
        game = trainer(model)
        for score in (1.0, 2.0):
            game.note_score(score)
        assert game.best is not None
        assert game.best["score"] == kept


def test_a_checkpoint_without_the_discriminators_moments_is_refused(
    tmp_path: Path, train: Any, duel: Any, capsys: Any
) -> None:
    out = tmp_path / "run"

    def stop(model: Any, step: int) -> None:
        if step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out, model=duel(), on_save=stop)
    newest = checkpoint_path(out / "checkpoints", 8)
    checkpoint = load_checkpoint(newest)
    del checkpoint.state["discriminator_optimiser"]
    for key in ("format", "step", "files"):
        checkpoint.state.pop(key)
    save_checkpoint(newest.parent, checkpoint)
    train(out, model=duel())
    told = capsys.readouterr().err
    assert str(newest) in told
    assert "discriminator_optimiser" in told


@pytest.mark.parametrize("side", ["adam", "discriminator_adam"])
def test_a_checkpoint_of_a_game_without_the_moments_of_a_side_is_refused(
    trainer: Any, duel: Any, tmp_path: Path, side: str
) -> None:
    game = trainer(duel())
    game.restore(game.checkpoint(), tmp_path)  # before the first update there are none
    game.update()
    checkpoint = game.checkpoint()
    for name in [n for n in checkpoint.training if n.startswith(f"{side}.")]:
        del checkpoint.training[name]
    with pytest.raises(CheckpointError, match=f"moments of {side} are missing"):
        trainer(duel()).restore(checkpoint, tmp_path)


def test_moments_of_an_discriminator_that_is_not_there_are_refused(
    trainer: Any, duel: Any, build: Any, tmp_path: Path
) -> None:
    game = trainer(duel())
    game.update()
    checkpoint = game.checkpoint()
    alone = trainer(build())
    assert isinstance(alone.model, VAE)
    checkpoint.weights = alone.model.state_dict()
    with pytest.raises(CheckpointError, match=r"discriminator_adam.*not part of a training"):
        alone.restore(checkpoint, tmp_path)


def test_patience_with_an_discriminator_is_told_to_be_of_no_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = small_grid((16, 16, 1))
    model = MODELS["wae-gan"].for_data(data)
    options: Any = {"steps": 3, "save_every": 1, "threads": 1, "batch_size": 4, "progress": False}
    fit(model, data, patience=1, out=tmp_path / "run", **options)
    assert "training.patience: has no effect, as no loss shows how good" in capsys.readouterr().err
    assert load_run(tmp_path / "run").status["step"] == 3
