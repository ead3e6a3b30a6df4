"""The metric log: what it holds, what a killed process leaves of it, and its TensorBoard mirror."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from disentwine.errors import CheckpointError
from disentwine.runs.run import load_run
from disentwine.runs.storage import MetricLog, read_log


def open_log(folder: Path, *, length: int = 0, step: int = 0) -> MetricLog:
    return MetricLog(
        folder / "metrics.jsonl", length=length, tensorboard=folder / "events", step=step
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("train", 50, {"loss": 1.5, "kl": 0.25})
    log.write("validation", 50, {"loss": 2.5})
    log.close()
    assert read_log(tmp_path / "metrics.jsonl") == [
        {"kind": "train", "step": 50, "loss": 1.5, "kl": 0.25},
        {"kind": "validation", "step": 50, "loss": 2.5},
    ]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "metrics.jsonl") == []


def test_a_half_written_last_line_is_passed_over(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("train", 1, {"loss": 1.0})
    log.write("train", 2, {"loss": 2.0})
    log.close()
    content = (tmp_path / "metrics.jsonl").read_bytes()
    first = content.index(b"\n") + 1
    for end in range(first, len(content)):
        (tmp_path / "metrics.jsonl").write_bytes(content[:end])
        assert [record["step"] for record in read_log(tmp_path / "metrics.jsonl")] == [1]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n\xff\x00\n{"step": 3}\n')
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl, line 2"):
        read_log(tmp_path / "metrics.jsonl")


def test_going_on_cuts_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write("train", 1, {"loss": 1.0})
    length = log.sync()
    log.write("train", 2, {"loss": 2.0})
    log.close()
    assert length == (tmp_path / "metrics.jsonl").read_bytes().index(b"\n") + 1
    log = open_log(tmp_path, length=length, step=1)
    assert log.sync() == length
    log.write("train", 2, {"loss": 3.0})
    log.close()
    assert [record["loss"] for record in read_log(tmp_path / "metrics.jsonl")] == [1.0, 3.0]


def test_a_log_that_lost_records_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n')
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl has lost records: 12 bytes, 99"):
        open_log(tmp_path, length=99)
    assert (tmp_path / "metrics.jsonl").read_bytes() == b'{"step": 1}\n'


def test_a_run_logs_every_interval_and_every_validation(tmp_path: Path, train: Any) -> None:
    train(tmp_path / "run")
    records = load_run(tmp_path / "run").metrics
    steps = {
        kind: [r["step"] for r in records if r["kind"] == kind] for kind in ("train", "validation")
    }
    assert steps == {"train": [3, 6, 9, 12], "validation": [0, 4, 8, 12, 13]}
    for record in records:
        assert list(record) == ["kind", "step", "loss", "reconstruction", "kl"]
        assert record["loss"] == pytest.approx(record["reconstruction"] + record["kl"], rel=1e-5)


def test_the_log_holds_no_clock(tmp_path: Path, train: Any) -> None:
    for name in ("a", "b"):
        train(tmp_path / name)
    assert (tmp_path / "a/metrics.jsonl").read_bytes() == (
        tmp_path / "b/metrics.jsonl"
    ).read_bytes()
    assert "time" not in (tmp_path / "a/metrics.jsonl").read_text()


def events(run: Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return accumulator.EventAccumulator(str(run / "tensorboard")).Reload()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_shows_the_same_numbers(tmp_path: Path, train: Any, after_update: Any) -> None:
    def fail() -> None:
        raise KeyError

    after_update({9: fail})
    with pytest.raises(KeyError):
        train(tmp_path / "run")
    train(tmp_path / "run")
    seen = events(tmp_path / "run")
    logged = {
        kind: {
            r["step"]: r["loss"] for r in load_run(tmp_path / "run").metrics if r["kind"] == kind
        }
        for kind in ("train", "validation")
    }
    for kind, values in logged.items():
        shown = {event.step: event.value for event in seen.Scalars(f"{kind}/loss")}
        assert shown == pytest.approx(values, rel=1e-5)


def test_without_tensorboard_the_log_is_the_same(
    tmp_path: Path,
    train: Any,
    monkeypatch: pytest.MonkeyPatch,
    fingerprint: Any,
    uninterrupted: Any,
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    train(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == uninterrupted
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_records_are_plain_json(tmp_path: Path, train: Any) -> None:
    train(tmp_path / "run")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
