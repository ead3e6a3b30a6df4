"""Moving averages of weights; callbacks, their order, their state and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from disentwine.core.random import fixed_noise
from disentwine.errors import CheckpointError, UsageError
from disentwine.models import LadderVAE
from disentwine.runs.checkpoint import checkpoint_path, load_checkpoint
from disentwine.runs.run import load_run
from disentwine.training.callbacks import Average, Callback
from disentwine.training.options import TrainingOptions
from disentwine.training.trainer import Trainer

OWN = "weights."

UPDATES = 3


@pytest.fixture
def courses(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Tensor]]:
    """The model's own weights after each update."""
    seen: list[dict[str, Tensor]] = []
    update = Trainer.update

    def watched(trainer: Trainer) -> None:
        update(trainer)
        seen.append({n: value.clone() for n, value in trainer.model.state_dict().items()})

    monkeypatch.setattr(Trainer, "update", watched)
    return seen


def averages(course: list[dict[str, Tensor]], name: str) -> list[Tensor]:
    """By the definition: a plain mean first, then a share of every new value."""
    values, found = [weights[name].double() for weights in course], []
    for t, value in enumerate(values, start=1):
        last = found[-1] if found else value
        found.append(value if t == 1 else last + (value - last) / min(t, UPDATES))
    return found


@pytest.fixture
def normed(pictures: Any) -> Any:
    """A model with running statistics and counters beside its weights."""

    def normed() -> LadderVAE:
        with fixed_noise(0):
            return LadderVAE.for_data(pictures, layers=(3, 2), hidden=(8, 6))

    return normed


def test_the_average_is_kept_and_the_own_weights_go_on(
    tmp_path: Path, train: Any, normed: Any, courses: list[dict[str, Tensor]]
) -> None:
    model = train(tmp_path / "run", model=normed(), weight_averaging=UPDATES)
    checkpoint = load_checkpoint(checkpoint_path(tmp_path / "run" / "checkpoints", len(courses)))
    for name, value in checkpoint.weights.items():
        own = checkpoint.training[f"{OWN}{name}"]
        assert torch.equal(own, courses[-1][name])
        if value.is_floating_point():
            torch.testing.assert_close(value.double(), averages(courses, name)[-1])
            assert not torch.equal(value, own)
        else:
            assert torch.equal(value, own)
    best = load_run(tmp_path / "run").checkpoint.weights
    assert all(torch.equal(value, best[name]) for name, value in model.state_dict().items())


def test_averaging_does_not_change_the_updates(
    train: Any, normed: Any, courses: list[dict[str, Tensor]]
) -> None:
    for averaged in (None, UPDATES):
        train(None, model=normed(), weight_averaging=averaged)
    half = len(courses) // 2
    for plain, averaged in zip(courses[:half], courses[half:], strict=True):
        assert all(torch.equal(plain[name], averaged[name]) for name in plain)


def test_validation_and_what_runs_on_save_see_the_average(
    tmp_path: Path, train: Any, build: Any, courses: list[dict[str, Tensor]]
) -> None:
    seen: dict[int, Tensor] = {}

    def on_save(model: Any, step: int) -> None:
        seen[step] = model.state_dict()["encoder.1.weight"].clone()

    train(tmp_path / "averaged", weight_averaging=UPDATES, on_save=on_save)
    expected = averages(courses, "encoder.1.weight")
    for step, value in seen.items():
        if step > 0:
            torch.testing.assert_close(value.double(), expected[step - 1])
    train(tmp_path / "plain")
    scores = {
        name: [r["loss"] for r in load_run(tmp_path / name).metrics if r["kind"] == "validation"]
        for name in ("averaged", "plain")
    }
    assert scores["averaged"][0] == scores["plain"][0]
    assert scores["averaged"][1:] != scores["plain"][1:]


def test_a_long_average_looks_at_a_hundred_moments() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    average = Average(model, updates=1000)
    seen: list[float] = []
    for step in range(1, 1001):
        torch.nn.init.constant_(model.weight, float(step))
        average.update(step)
        seen.append(average.weights["weight"].item())
    assert len(set(seen[9:])) == 100
    assert seen[-1] == pytest.approx(sum(range(10, 1001, 10)) / 100)


def test_a_checkpoint_without_own_weights_is_refused(
    tmp_path: Path, train: Any, pictures: Any, build: Any
) -> None:
    train(tmp_path / "run")
    path = checkpoint_path(tmp_path / "run" / "checkpoints", 13)
    options = TrainingOptions(steps=13, batch_size=8, device="cpu", weight_averaging=UPDATES)
    trainer = Trainer(build(), pictures, options, seed=0)
    with pytest.raises(CheckpointError, match="does not fit"):
        trainer.restore(load_checkpoint(path), path)


class Counter(Callback):
    """Counts the updates, and draws random numbers in every event."""

    name = "counter"

    def __init__(self) -> None:
        self.updates = 0
        self.noise = torch.zeros(2)
        self.events: list[str] = []

    def _note(self, event: str) -> None:
        torch.rand(3)
        self.events.append(event)

    def on_begin(self, model: Any, dataset: Any) -> None:
        self._note("begin")

    def on_update(self, step: int) -> None:
        self._note("update")
        self.updates += 1
        self.noise = self.noise + step

    def on_log(self, step: int, kind: str, values: Any) -> None:
        self._note(kind)

    def on_validate(self, step: int, scores: Any) -> None:
        self._note("validate")

    def on_save(self, model: Any, step: int) -> None:
        self._note("save")

    def on_end(self, model: Any, step: int) -> None:
        self._note("end")

    def tensors(self) -> dict[str, Tensor]:
        return {"noise": self.noise}

    def state(self) -> dict[str, Any]:
        return {"updates": self.updates}

    def restore(self, tensors: Any, state: Any) -> None:
        self.noise, self.updates = tensors["noise"], state["updates"]


def test_callbacks_are_called_in_order_and_change_nothing(
    tmp_path: Path, train: Any, uninterrupted: dict[str, str], fingerprint: Any
) -> None:
    counter = Counter()
    train(tmp_path / "run", callbacks=[counter])
    assert counter.updates == 13
    assert counter.events[:4] == ["begin", "validation", "validate", "save"]
    assert counter.events[4:8] == ["update", "update", "update", "train"]
    assert counter.events[-4:] == ["validation", "validate", "save", "end"]
    found = fingerprint(tmp_path / "run")
    for name in ("weights.safetensors", "metrics.jsonl"):
        assert found[name] == uninterrupted[name]


def test_the_state_of_a_callback_is_resumed_exactly(
    tmp_path: Path, train: Any, fingerprint: Any, after_update: Any
) -> None:
    train(tmp_path / "whole", callbacks=[Counter()])

    def fail() -> None:
        raise KeyError

    after_update({6: fail})
    with pytest.raises(KeyError):
        train(tmp_path / "broken", callbacks=[Counter()])
    resumed = Counter()
    train(tmp_path / "broken", callbacks=[resumed])
    assert resumed.updates == 13
    assert resumed.noise.tolist() == [sum(range(1, 14))] * 2
    assert fingerprint(tmp_path / "broken") == fingerprint(tmp_path / "whole")


def test_a_checkpoint_of_a_callback_that_is_missing_is_refused(
    tmp_path: Path, train: Any, after_update: Any
) -> None:
    def fail() -> None:
        raise KeyError

    after_update({6: fail})
    with pytest.raises(KeyError):
        train(tmp_path / "run", callbacks=[Counter()])
    with pytest.raises(CheckpointError, match=r"counter\.noise.*not part of a training"):
        train(tmp_path / "run")


def test_a_checkpoint_of_a_callback_with_state_only_is_refused_without_it(
    tmp_path: Path, train: Any, after_update: Any
) -> None:
    class Logger(Counter):
        name = "logger"

        def tensors(self) -> dict[str, Tensor]:
            return {}

    after_update({6: _killed})
    with pytest.raises(KeyError):
        train(tmp_path / "run", callbacks=[Logger()])
    with pytest.raises(CheckpointError, match=r"logger.*not part of a training with these"):
        train(tmp_path / "run")


def test_a_callback_that_is_added_later_starts_new(
    tmp_path: Path, train: Any, after_update: Any, capsys: Any
) -> None:
    after_update({6: _killed})
    with pytest.raises(KeyError):
        train(tmp_path / "run")
    counter = Counter()
    train(tmp_path / "run", callbacks=[counter])
    assert counter.updates == 13 - 4
    assert "step-00000004 has no state of the callback 'counter'" in capsys.readouterr().err


class Logger(Callback):
    """A logger of a tracking service: its session continues under the number it began with."""

    name = "logger"

    def __init__(self, service: dict[int, list[Any]]) -> None:
        self.service, self.session = service, len(service)

    def on_begin(self, model: Any, dataset: Any) -> None:
        self.records = self.service.setdefault(self.session, [])

    def on_log(self, step: int, kind: str, values: Any) -> None:
        self.records.append({"kind": kind, "step": step, **values})

    def state(self) -> dict[str, Any]:
        return {"session": self.session}

    def restore(self, tensors: Any, state: Any) -> None:
        self.session = state["session"]


def test_a_logger_gets_every_record_and_continues_its_session(
    tmp_path: Path, train: Any, after_update: Any
) -> None:
    service: dict[int, list[Any]] = {7: []}  # of another training
    after_update({7: _killed})
    with pytest.raises(KeyError):
        train(tmp_path / "run", callbacks=[Logger(service)])
    assert service.keys() == {7, 1}
    before = len(service[1])
    service[2] = []
    train(tmp_path / "run", callbacks=[Logger(service)])
    assert service.keys() == {7, 1, 2}
    assert service[2] == []
    assert {record["kind"] for record in service[1]} == {"train", "validation"}
    # The record of step 6 is later than the last checkpoint, of step 4: it comes twice, and equal.
    first, second = service[1][:before], service[1][before:]
    assert first[-1] == second[0]
    assert [*first, *second[1:]] == load_run(tmp_path / "run").metrics


def test_callbacks_that_share_a_name_or_are_none_are_refused_together(
    tmp_path: Path, train: Any
) -> None:
    class Adam(Counter):
        name = "adam"

    class Dotted(Counter):
        name = "a.b"

    wrong: list[Any] = [Counter, Counter(), Counter(), Adam(), Dotted()]
    with pytest.raises(UsageError) as refused:
        train(tmp_path / "run", callbacks=wrong)
    for part in ("is not a Callback", "'counter' is taken", "'adam' is taken", "'a.b' has a dot"):
        assert part in str(refused.value)
    assert not (tmp_path / "run").exists()


def _killed() -> None:
    raise KeyError
