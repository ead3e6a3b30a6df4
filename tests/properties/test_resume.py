"""A resumed training is, to the bit, the one that was never stopped."""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import Interrupted
from disentwine.models import VAE
from disentwine.runs.checkpoint import versions
from disentwine.runs.fit import fit
from disentwine.runs.run import load_run
from disentwine.training.trainer import Trainer

OVERFITS = {"learning_rate": 0.02}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "incomplete last batch": {"batch_size": 11},
    "batch larger than the split": {"batch_size": 500},
    "clipped": {"clip_norm": 0.5},
    "patient": {"patience": 3, "save_every": 2, "steps": 60, **OVERFITS},
    "averaged": {"weight_averaging": 5},
    "warm-up": {"model": {"warm_up_steps": 10}},
    "Gaussian pixels": {"model": {"likelihood": "gaussian"}},
    "double precision": {"precision": "64-true"},
    "half precision": {"precision": "bf16-mixed"},
    "saved at every step": {"save_every": 1, "log_every": 5},
    "never saved in between": {"save_every": 100, "log_every": 100},
}


def stop(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def go_on_until_done(train: Any, out: Path, **options: Any) -> int:
    """Call `fit` again after every stop; returns how many stops there were."""
    for stops in range(100):
        try:
            train(out, **options)
            return stops
        except Interrupted:
            pass
    raise AssertionError("the training never ends")


@pytest.fixture(scope="module")
def reference(
    tmp_path_factory: pytest.TempPathFactory, train: Any, fingerprint: Any, build: Any
) -> Any:
    @cache
    def reference(name: str) -> Any:
        out = tmp_path_factory.mktemp("reference") / "run"
        options = dict(CONFIGURATIONS[name])
        model = train(out, **options | {"model": build(**options.pop("model", {}))})
        return fingerprint(out), model.state_dict()

    return reference


def resumed(name: str, steps: list[int], out: Path, train: Any, build: Any, after: Any) -> Any:
    options = dict(CONFIGURATIONS[name])
    model = options.pop("model", {})
    after(dict.fromkeys(steps, stop))

    def session(out: Path, **options: Any) -> None:
        session.model = train(out, model=build(**model), **options)  # type: ignore[attr-defined]

    stops = go_on_until_done(session, out, **options)
    return stops, session.model  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_resuming_is_exact(
    name: str,
    tmp_path: Path,
    train: Any,
    build: Any,
    after_update: Any,
    fingerprint: Any,
    reference: Any,
) -> None:
    out = tmp_path / "run"
    stops, model = resumed(name, [2, 7], out, train, build, after_update)
    digests, weights = reference(name)
    assert stops == 2
    assert fingerprint(out) == digests
    for key, value in model.state_dict().items():
        assert torch.equal(value, weights[key]), f"the returned model differs in {key}"


@pytest.mark.parametrize("step", [3, 4, 12, 13])
def test_resuming_is_exact_around_logs_and_saves(
    step: int, tmp_path: Path, train: Any, after_update: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    after_update({step: stop})
    assert go_on_until_done(train, tmp_path / "run") == 1
    assert fingerprint(tmp_path / "run") == uninterrupted


def test_precision_is_that_of_the_recipe(reference: Any) -> None:
    weights = {name: reference(name)[1] for name in ("plain", "half precision", "double precision")}
    name = "encoder.1.weight"
    assert weights["double precision"][name].dtype == torch.float64
    assert weights["half precision"][name].dtype == torch.float32
    assert not torch.equal(weights["half precision"][name], weights["plain"][name])


def test_patience_ends_the_training_early(reference: Any) -> None:
    assert int(reference("patient")[0]["newest"][5:]) < 60


def test_a_run_killed_right_after_its_first_checkpoint_goes_on_exactly(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    class Killed(BaseException):
        pass

    def die(model: Any, step: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        train(tmp_path / "run", on_save=die)
    train(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_tells_its_exit_code(
    number: int, code: int, tmp_path: Path, train: Any, after_update: Any
) -> None:
    after_update({6: lambda: stop(number)})
    before = signal.getsignal(number)
    saves: list[tuple[int, bool]] = []
    with pytest.raises(Interrupted, match=r"step 6 of 13.*run the same command") as caught:
        train(tmp_path / "run", on_save=lambda model, step: saves.append((step, model.training)))
    assert saves == [(0, False), (4, False), (6, False)]
    assert caught.value.exit_code == code
    assert signal.getsignal(number) == before
    run = load_run(tmp_path / "run", which="last")
    assert run.checkpoint.step == 6
    assert not run.finished
    assert run.status["step"] == 6


def test_a_signal_in_the_middle_of_a_save_waits_for_it(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    def on_save(model: Any, step: int) -> None:
        if step == 8:
            stop()

    with pytest.raises(Interrupted, match="step 8 "):
        train(tmp_path / "run", on_save=on_save)
    train(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == uninterrupted


def test_a_second_interrupt_stops_at_once(tmp_path: Path, train: Any, after_update: Any) -> None:
    def twice() -> None:
        stop(signal.SIGINT)
        stop(signal.SIGINT)

    after_update({6: twice})
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run")
    assert load_run(tmp_path / "run", which="last").checkpoint.step == 4


def test_a_signal_without_a_folder_stops_too(train: Any, after_update: Any) -> None:
    after_update({2: stop})
    with pytest.raises(Interrupted, match=r"stopped at step 2 of 13$"):
        train(None)


def test_what_runs_on_save_cannot_change_the_training(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    steps = []

    def on_save(model: Any, step: int) -> None:
        steps.append(step)
        model.eval()
        model.sample(5)
        torch.manual_seed(step)

    train(tmp_path / "run", on_save=on_save)
    assert steps == [0, 4, 8, 12, 13]
    assert fingerprint(tmp_path / "run") == uninterrupted


def test_the_folder_changes_nothing(tmp_path: Path, train: Any) -> None:
    kept, passing = train(tmp_path / "run"), train(None)
    for name, value in passing.state_dict().items():
        assert torch.equal(value, kept.state_dict()[name])


def test_the_best_weights_are_returned_and_loaded(tmp_path: Path, train: Any) -> None:
    out = tmp_path / "run"
    model = train(out, steps=60, save_every=2, **OVERFITS)
    run = load_run(out)
    scores = {r["step"]: r["loss"] for r in run.metrics if r["kind"] == "validation"}
    best = min(scores, key=lambda step: scores[step])
    assert run.checkpoint.step == best < 60
    assert run.status["best"] == {"step": best, "score": scores[best]}
    for name, value in run.checkpoint.weights.items():
        assert torch.equal(value, model.state_dict()[name])
    assert load_run(out, which="last").checkpoint.step == 60


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    stops=st.lists(st.integers(1, 19), min_size=1, max_size=6, unique=True),
    batch_size=st.integers(1, 50),
    save_every=st.integers(1, 9),
    log_every=st.integers(1, 9),
    patience=st.none() | st.integers(1, 3),
    clip_norm=st.none() | st.floats(0.1, 10),
    warm_up_steps=st.integers(0, 30),
    learning_rate=st.sampled_from([1e-3, 0.05]),
)
def test_any_training_stopped_anywhere_goes_on_exactly(
    pictures: Arrays,
    fingerprint: Any,
    stops: list[int],
    warm_up_steps: int,
    **options: Any,
) -> None:
    def session(out: Path, pending: dict[int, Any]) -> None:
        with fixed_noise(0):
            model = VAE.for_data(pictures, latent=2, warm_up_steps=warm_up_steps)
        update = Trainer.update

        def patched(trainer: Trainer) -> None:
            update(trainer)
            pending.pop(trainer.step, lambda: None)()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trainer, "update", patched)
            fit(model, pictures, steps=19, threads=1, out=out, progress=False, **options)

    with TemporaryDirectory() as folder:
        straight, broken = Path(folder) / "straight", Path(folder) / "broken"
        session(straight, {})
        pending = dict.fromkeys(stops, stop)
        go_on_until_done(lambda out: session(out, pending), broken)
        assert fingerprint(broken) == fingerprint(straight)


def test_other_threads_or_versions_are_told(
    tmp_path: Path,
    train: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def pause(model: Any, step: int) -> None:
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", threads=None, on_save=pause)
    now = versions()
    monkeypatch.setattr("disentwine.runs.checkpoint.versions", lambda: now | {"torch": "99.0"})
    torch.set_num_threads(2)
    try:
        train(tmp_path / "run", threads=None)
    finally:
        torch.set_num_threads(1)
    told = capsys.readouterr().err
    assert f"step-00000004 was saved with threads 1, now 2; torch {now['torch']}, now 99.0" in told
    assert told.count("\n") == 1


def test_nothing_is_told_where_going_on_is_exact(
    run: Path, train: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    train(run)
    assert capsys.readouterr().err == ""
