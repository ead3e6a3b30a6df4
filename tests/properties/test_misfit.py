"""A checkpoint with the right digests and the wrong content is refused, and the one before is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from disentwine.errors import CheckpointError
from disentwine.runs.checkpoint import load_checkpoint, load_weights, save_checkpoint
from disentwine.training.callbacks import Checkpoint


def wrong_shape(c: Checkpoint) -> None:
    c.weights["encoder.1.weight"] = c.weights["encoder.1.weight"][:5]


def missing_weight(c: Checkpoint) -> None:
    del c.weights["encoder.1.weight"]


def extra_weight(c: Checkpoint) -> None:
    c.weights["encoder.99.weight"] = torch.zeros(2)


def nan_weight(c: Checkpoint) -> None:
    c.weights["encoder.1.weight"][0] = torch.nan


def infinite_weight(c: Checkpoint) -> None:
    c.weights["encoder.1.weight"][0] = torch.inf


def nan_moment(c: Checkpoint) -> None:
    c.training["adam.0.exp_avg"][0] = torch.nan


def wrong_moment_shape(c: Checkpoint) -> None:
    c.training["adam.0.exp_avg_sq"] = torch.zeros(3)


def missing_moment(c: Checkpoint) -> None:
    del c.training["adam.0.exp_avg"]


def moment_of_nothing(c: Checkpoint) -> None:
    c.training["adam.999.exp_avg"] = torch.zeros(3)


def extra_tensor(c: Checkpoint) -> None:
    c.training["surprise"] = torch.zeros(3)


def no_generator(c: Checkpoint) -> None:
    del c.training["generator.cpu"]


def short_generator(c: Checkpoint) -> None:
    c.training["generator.cpu"] = c.training["generator.cpu"][:100]


def no_best(c: Checkpoint) -> None:
    del c.state["best"]


def other_optimiser(c: Checkpoint) -> None:
    c.state["optimiser"] = []


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (wrong_shape, "encoder.1.weight"),
        (missing_weight, "'encoder.1.weight' is missing"),
        (extra_weight, "not part of the model"),
        (nan_weight, "NaN"),
        (infinite_weight, "infinity"),
        (nan_moment, "NaN"),
        (wrong_moment_shape, "shape"),
        (missing_moment, "moments of parameter 0"),
        (moment_of_nothing, "no parameter"),
        (extra_tensor, "surprise"),
        (no_generator, "generator.cpu"),
        (short_generator, "RNG state"),
        (no_best, "best"),
        (other_optimiser, "parameter group"),
    ],
)
def test_right_digests_do_not_save_wrong_content(
    spoil: Callable[[Checkpoint], None],
    reason: str,
    newest: Path,
    run: Path,
    train: Any,
    fingerprint: Any,
    uninterrupted: Any,
    capsys: Any,
) -> None:
    checkpoint = load_checkpoint(newest)
    spoil(checkpoint)
    for key in ("format", "step", "files"):
        checkpoint.state.pop(key)
    save_checkpoint(newest.parent, checkpoint)
    load_checkpoint(newest)
    train(run)
    told = capsys.readouterr().err
    assert str(newest) in told
    assert reason in told
    assert fingerprint(run) == uninterrupted


def test_all_that_does_not_fit_is_reported_at_once(build: Any) -> None:
    model = build()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    before = {name: value.clone() for name, value in weights.items()}
    weights["surprise"] = weights.pop("encoder.1.bias")
    weights["encoder.1.weight"] *= torch.nan
    with pytest.raises(CheckpointError) as caught:
        load_weights(model, weights, source="here")
    for part in ("here", "encoder.1.bias", "encoder.1.weight", "surprise"):
        assert part in str(caught.value)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_tied_weights_and_other_layouts_are_saved(tmp_path: Path) -> None:
    tied = torch.arange(6.0)
    image = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    weights = {"a": tied, "b": tied, "c": image, "d": image[:, :, ::2]}
    path = save_checkpoint(tmp_path, Checkpoint(1, weights, {}))
    for name, value in load_checkpoint(path).weights.items():
        assert torch.equal(value, weights[name])
