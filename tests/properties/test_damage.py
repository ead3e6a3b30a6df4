"""A checkpoint that is not to the bit what was saved is refused by name, and the one before is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.errors import CheckpointError, Interrupted
from disentwine.runs.checkpoint import (
    STATE,
    TRAINING,
    WEIGHTS,
    canonical_json,
    checkpoint_path,
    checkpoint_steps,
    load_best,
    load_checkpoint,
    load_newest,
    save_checkpoint,
    sha256,
)
from disentwine.runs.run import load_run
from disentwine.training.callbacks import Checkpoint

FILES = (WEIGHTS, TRAINING, STATE)
NEWEST, PREVIOUS = 10, 8


def test_an_undamaged_run_goes_on_without_a_word(
    run: Path, train: Any, fingerprint: Any, uninterrupted: Any, capsys: Any
) -> None:
    train(run)
    assert fingerprint(run) == uninterrupted
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", FILES)
def test_truncation_anywhere_is_refused(name: str, newest: Path) -> None:
    content = (newest / name).read_bytes()
    offsets = np.random.default_rng(0).integers(0, len(content), 40)
    for offset in [0, 1, 7, 8, 9, len(content) - 1, *offsets.tolist()]:
        (newest / name).write_bytes(content[:offset])
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(newest)
        assert str(newest / name) in str(caught.value)
    (newest / name).write_bytes(content + b"\n")
    with pytest.raises(CheckpointError):
        load_checkpoint(newest)


@pytest.mark.parametrize("name", FILES[:2])
def test_a_flipped_bit_is_refused(name: str, newest: Path) -> None:
    content = (newest / name).read_bytes()
    rng = np.random.default_rng(0)
    places = [*range(0, 64, 9), len(content) - 1, *rng.integers(0, len(content), 40).tolist()]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        (newest / name).write_bytes(damaged)
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(newest)
        assert str(newest / name) in str(caught.value)


def test_every_byte_of_the_state_is_guarded(newest: Path) -> None:
    content = (newest / STATE).read_bytes()
    for place, byte in enumerate(content):
        damaged = bytearray(content)
        # The other case of a letter turns 1e-08 into 1E-08, which is the same JSON.
        damaged[place] ^= 0x20 if chr(byte).isalpha() else 1
        (newest / STATE).write_bytes(damaged)
        with pytest.raises(CheckpointError):
            load_checkpoint(newest)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "empty"])
def test_resuming_uses_the_checkpoint_before(
    name: str, damage: str, newest: Path, goes_on_from_the_previous: Any
) -> None:
    file = newest / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        file.unlink()
    else:
        kept = {"truncated": len(content) // 2, "flipped": len(content), "empty": 0}[damage]
        file.write_bytes(content[:kept])
    goes_on_from_the_previous(refused=file)


def rewrite_state(newest: Path, **changes: Any) -> None:
    """Change the state, with a digest that fits."""
    state = json.loads((newest / STATE).read_text()) | changes
    del state["digest"]
    state = {key: value for key, value in state.items() if value is not None}
    state["digest"] = sha256(canonical_json(state))
    (newest / STATE).write_bytes(canonical_json(state))


def test_a_format_from_the_future_is_refused(newest: Path, goes_on_from_the_previous: Any) -> None:
    rewrite_state(newest, format=3)
    with pytest.raises(CheckpointError, match=r"format 3; this version reads formats 1 to 2"):
        load_checkpoint(newest)
    goes_on_from_the_previous(refused=newest / STATE)


@pytest.mark.parametrize(
    "changes", [{"files": None}, {"files": {}}, {"step": "x"}, {"format": None}]
)
def test_a_state_that_lacks_something_is_refused(changes: dict[str, Any], newest: Path) -> None:
    rewrite_state(newest, **changes)
    with pytest.raises(CheckpointError, match=r"state\.json"):
        load_checkpoint(newest)


@pytest.mark.parametrize("content", [b"[]", b"null", b"NaN", b'{"digest": NaN}', b"[" * 99999])
def test_a_state_that_is_something_else_is_refused(content: bytes, newest: Path) -> None:
    (newest / STATE).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state\.json"):
        load_checkpoint(newest)


def test_a_renamed_checkpoint_is_refused(newest: Path, goes_on_from_the_previous: Any) -> None:
    newest.rename(newest.with_name("step-00000011"))
    goes_on_from_the_previous(refused=newest.with_name("step-00000011"))


def test_other_things_in_the_folder_are_left_alone(run: Path, train: Any) -> None:
    for name in ("step-notanumber", "step-abcdefgh", "notes"):
        (run / "checkpoints" / name).mkdir()
    train(run)
    assert (run / "checkpoints" / "step-abcdefgh").is_dir()


def test_a_refused_checkpoint_does_not_push_out_a_good_one(
    run: Path, newest: Path, train: Any
) -> None:
    (newest / WEIGHTS).write_bytes(b"")
    stopped = []

    def stop(model: Any, step: int) -> None:
        stopped.append(step)
        raise Interrupted("", signal_number=15)

    with pytest.raises(Interrupted):
        train(run, on_save=stop)
    assert stopped == [12]
    for step in checkpoint_steps(run / "checkpoints"):
        load_checkpoint(checkpoint_path(run / "checkpoints", step))
    assert checkpoint_steps(run / "checkpoints") == [12, PREVIOUS]


def test_when_nothing_can_be_trusted_every_reason_is_given(run: Path, train: Any) -> None:
    for folder in (run / "checkpoints").iterdir():
        (folder / TRAINING).write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint can be used") as caught:
        train(run)
    for step in (NEWEST, PREVIOUS):
        assert str(checkpoint_path(run / "checkpoints", step) / TRAINING) in str(caught.value)
    assert checkpoint_steps(run / "checkpoints") == [NEWEST, PREVIOUS]


def test_loading_a_run_tells_of_damage(run: Path, newest: Path, capsys: Any) -> None:
    (newest / WEIGHTS).write_bytes(b"")
    assert load_run(run, which="last").checkpoint.step == PREVIOUS
    assert str(newest / WEIGHTS) in capsys.readouterr().err


def test_a_damaged_best_checkpoint_is_replaced_aloud(tmp_path: Path, capsys: Any) -> None:
    for step in (1, 2, 3):
        state = {"best": {"step": 1, "score": 0.0}}
        save_checkpoint(tmp_path, Checkpoint(step, {"w": torch.zeros(1)}, {}, state))
    best = load_best(tmp_path)
    assert best is not None
    assert best.step == 1
    damaged = checkpoint_path(tmp_path, 1) / WEIGHTS
    damaged.write_bytes(b"")
    best = load_best(tmp_path)
    assert best is not None
    assert best.step == 3
    told = capsys.readouterr().err
    assert str(damaged) in told
    assert "step-00000003 is used instead" in told


def test_a_folder_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert load_newest(tmp_path) is None
    assert load_best(tmp_path / "missing") is None
