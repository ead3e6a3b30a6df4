"""Fixtures that tests of several packages share."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from disentwine.cli import main
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import Interrupted
from disentwine.models import VAE
from disentwine.runs.checkpoint import checkpoint_path, checkpoint_steps
from disentwine.runs.fit import fit
from disentwine.training.trainer import Trainer

NOBODY = 65534


@pytest.fixture
def without_permissions() -> Callable[[], AbstractContextManager[None]]:
    """Act as a user bound by folder permissions, which root is not."""

    @contextmanager
    def bound() -> Iterator[None]:
        for used in ("lightning_fabric", "disentwine.report"):
            import_module(used)  # that user may not read root's home
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(user)

    return bound


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Command:
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))

    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["disentwine", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except Exception as error:
            line = " ".join(map(str, words))
            pytest.fail(f"'disentwine {line}' ends in a traceback: {error!r}")
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


STEPS = 13

NEWEST, PREVIOUS = 10, 8

TRAINING: dict[str, Any] = {
    "steps": STEPS,
    "batch_size": 8,
    "save_every": 4,
    "log_every": 3,
    "threads": 1,
    "device": "cpu",
    "progress": False,
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def pictures() -> Arrays:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    return Arrays(images=images, factors=rng.normal(size=(60, 2)))


@pytest.fixture(scope="session")
def build(pictures: Arrays) -> Callable[..., VAE]:
    """A new model with the same weights at every call."""

    def build(**options: Any) -> VAE:
        with fixed_noise(0):
            return VAE.for_data(pictures, latent=2, **options)

    return build


@pytest.fixture(scope="session")
def train(pictures: Arrays, build: Callable[..., VAE]) -> Callable[..., Any]:
    """`fit` on the small dataset, with a small model unless another is given."""

    def train(out: Path | None, *, model: Any = None, **options: Any) -> Any:
        return fit(model or build(), pictures, out=out, **(TRAINING | options))

    return train


@pytest.fixture(scope="session")
def fingerprint() -> Callable[[Path], dict[str, str]]:
    """SHA-256 of everything that resuming must not change."""

    def fingerprint(run: Path) -> dict[str, str]:
        checkpoints = run / "checkpoints"
        newest = checkpoint_path(checkpoints, checkpoint_steps(checkpoints)[0])
        files = [*sorted(newest.iterdir()), run / "metrics.jsonl"]
        digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        assert len(digests) == 4
        return digests | {"newest": newest.name}

    return fingerprint


@pytest.fixture(scope="session")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, train: Any, fingerprint: Any
) -> dict[str, str]:
    """The fingerprint of a training without interruptions."""
    out = tmp_path_factory.mktemp("uninterrupted") / "run"
    train(out)
    return dict(fingerprint(out))


@pytest.fixture
def after_update(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[dict[int, Callable[[], None]]], None]:
    """Call functions right after the updates of chosen steps, each once."""
    update = Trainer.update

    def after_update(actions: dict[int, Callable[[], None]]) -> None:
        def patched(trainer: Trainer) -> None:
            update(trainer)
            actions.pop(trainer.step, lambda: None)()

        monkeypatch.setattr(Trainer, "update", patched)

    return after_update


@pytest.fixture(scope="session")
def leftovers() -> Callable[[Path], list[Path]]:
    """Partial files that interrupted saves left in a run folder."""
    return lambda run: sorted(run.rglob(".half-written-*"))


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory, train: Any) -> Path:
    """A run that was stopped at step 10 of 13, with an earlier checkpoint of step 8."""
    out = tmp_path_factory.mktemp("stopped") / "run"

    def stop(model: Any, step: int) -> None:
        if step == PREVIOUS:
            raise Interrupted("", signal_number=15)

    with pytest.raises(Interrupted):
        train(out, on_save=stop)
    update = Trainer.update

    def patched(trainer: Trainer) -> None:
        update(trainer)
        if trainer.step == NEWEST:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", patched)
        with pytest.raises(Interrupted):
            train(out)
    assert checkpoint_steps(out / "checkpoints") == [NEWEST, PREVIOUS]
    return out


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    """A copy of the stopped run, to be damaged."""
    shutil.copytree(stopped, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def newest(run: Path) -> Path:
    return checkpoint_path(run / "checkpoints", NEWEST)


@pytest.fixture
def goes_on_from_the_previous(
    run: Path, train: Any, fingerprint: Any, uninterrupted: Any, capsys: Any
) -> Callable[..., None]:
    def check(*, refused: Path) -> None:
        train(run)
        told = capsys.readouterr().err
        assert str(refused) in told
        assert f"step-{PREVIOUS:08d} is used instead" in told
        assert told.count("\n") == 1
        assert fingerprint(run) == uninterrupted

    return check
