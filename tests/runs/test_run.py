"""The run folder: one process at a time, one recipe, never overwritten."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disentwine.data import Arrays, Pendulum
from disentwine.errors import CheckpointError, UsageError
from disentwine.evaluation.evaluate import evaluate
from disentwine.models import VAE, CausalVAE
from disentwine.runs.fit import fit, train_recipe
from disentwine.runs.recipe import Recipe, parse_recipe
from disentwine.runs.run import check_run, find_runs, load_run, lock_run, recipe_diff

HOLD = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(out: Path) -> Iterator[None]:
    """Another process has the run folder."""
    command = [sys.executable, "-c", HOLD, str(out / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        other.communicate(b"")


@pytest.fixture
def recipe() -> Recipe:
    return parse_recipe(
        {
            "data": {"name": "pendulum", "size": 32},
            "model": {"name": "vae", "latent": 2},
            "training": {"steps": 2, "batch_size": 8, "threads": 1},
        },
        source="test",
    )


def test_a_recipe_becomes_a_run(tmp_path: Path, recipe: Recipe) -> None:
    train_recipe(recipe, tmp_path / "run", progress=False)
    run = load_run(tmp_path / "run")
    assert run.finished
    assert run.recipe == recipe
    assert run.status["step"] == 2
    assert run.status["seconds"] > 0
    assert repr(run) == f"Run({tmp_path / 'run'}: vae on pendulum, finished, step 2)"
    model = run.model
    assert not model.training
    assert model.image_shape == (32, 32, 3)
    assert model.represent(run.dataset.images[:4]).shape == (4, 2)
    assert [r.path for r in find_runs(tmp_path)] == [tmp_path / "run"]


def test_a_finished_run_is_never_overwritten(tmp_path: Path, train: Any, fingerprint: Any) -> None:
    train(tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    with pytest.raises(UsageError, match=r"finished run, which is never overwritten; choose"):
        train(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == before


def test_another_recipe_is_refused_with_the_recipe_diff(
    tmp_path: Path, train: Any, build: Any
) -> None:
    train(tmp_path / "run")
    with pytest.raises(UsageError) as caught:
        train(tmp_path / "run", steps=99, seed=5, model=build(warm_up_steps=7))
    for part in ("training.steps was 13, is 99", "seed was 0, is 5", "model.warm_up_steps was 0"):
        assert part in str(caught.value)


def test_two_processes_do_not_share_a_run(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    out = tmp_path / "run"

    def stop(model: Any, step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out, on_save=stop)
    with held_by_another(out):
        with pytest.raises(UsageError, match="is being trained by another process"):
            train(out)
        assert load_run(out).running
    assert not load_run(out).running
    train(out)
    assert fingerprint(out) == uninterrupted


def test_nobody_replaces_the_recipe_of_a_run_before_its_first_checkpoint(
    tmp_path: Path, train: Any, recipe: Recipe
) -> None:
    out = tmp_path / "run"
    with lock_run(out, recipe):
        pass
    other = replace(recipe, seed=5)
    before = (out / "recipe.yaml").read_bytes()
    with held_by_another(out):
        for begin in (lambda: train(out), lambda: train_recipe(other, out, progress=False)):
            with pytest.raises(UsageError, match="is being trained by another process"):
                begin()
            assert (out / "recipe.yaml").read_bytes() == before
    check_run(out, other)
    assert (out / "recipe.yaml").read_bytes() == before
    train_recipe(other, out, progress=False)
    assert load_run(out).recipe == other


def test_a_run_is_one_process_s_before_it_has_a_recipe(tmp_path: Path, train: Any) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with held_by_another(out), pytest.raises(UsageError, match="trained by another process"):
        train(out)
    assert [path.name for path in out.iterdir()] == [".lock"]
    train(out)
    assert load_run(out).finished


def test_only_a_lock_that_is_held_means_running(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    assert (run / ".lock").exists()
    monkeypatch.setattr("disentwine.runs.run.FileLock.acquire", refuse)
    assert not load_run(run).running


def test_copies_that_were_cut_off_are_no_runs(run: Path) -> None:
    shutil.copytree(run, run.parent / ".copy")
    shutil.copytree(run, run.parent / "study" / ".copy")
    assert [found.path for found in find_runs(run.parent)] == [run]


def test_the_lock_is_held_while_training_and_let_go_after(tmp_path: Path, train: Any) -> None:
    out = tmp_path / "run"

    def again(model: Any, step: int) -> None:
        if step == 4:
            train(out)

    with pytest.raises(UsageError, match="is being trained by another process"):
        train(out, on_save=again)
    train(out)
    assert load_run(out).finished


def test_a_run_that_died_before_its_recipe_was_whole_starts_anew(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any, leftovers: Any
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / ".half-written-0123").write_text("data:\n  na")
    train(out)
    assert fingerprint(out) == uninterrupted
    assert leftovers(out) == []


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run folder"):
        load_run(tmp_path)


def test_a_run_without_checkpoint_has_no_model_yet(tmp_path: Path, recipe: Recipe) -> None:
    with (
        lock_run(tmp_path / "run", recipe) as run,
        pytest.raises(CheckpointError, match="has no checkpoint yet"),
    ):
        _ = run.model


@pytest.mark.parametrize("content", ["", "data: [", "null", "data: {name: nothing}"])
def test_a_damaged_recipe_is_one_error(content: str, tmp_path: Path, train: Any) -> None:
    train(tmp_path / "run")
    (tmp_path / "run" / "recipe.yaml").write_text(content)
    with pytest.raises(UsageError, match=r"recipe\.yaml"):
        train(tmp_path / "run")


@pytest.mark.parametrize("content", ["", "{", "null", "[]", "{}"])
def test_a_damaged_status_heals(
    content: str, tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    out = tmp_path / "run"
    train(out)
    (out / "status.json").write_text(content)
    assert not load_run(out).finished
    train(out)
    assert load_run(out).finished
    assert fingerprint(out) == uninterrupted


def test_a_run_of_other_pictures_does_not_fit(tmp_path: Path, train: Any, pictures: Any) -> None:
    def stop(model: Any, step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", on_save=stop)
    others = Arrays(images=np.zeros((60, 32, 32, 3), np.uint8))
    options = {"steps": 13, "batch_size": 8, "save_every": 4, "log_every": 3, "threads": 1}
    with pytest.raises(UsageError, match="holds a run of another recipe"):
        fit(VAE.for_data(others, latent=2), others, out=tmp_path / "run", device="cpu", **options)


def test_a_data_set_in_memory_is_known_by_its_split_and_names(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    factors = np.random.default_rng(1).normal(size=(60, 2))
    options: dict[str, Any] = {"steps": 1, "batch_size": 4, "threads": 1}

    def train(names: tuple[str, str], seed: int) -> None:
        arrays = Arrays(images=images, factors=factors, names=names, seed=seed)
        fit(VAE.for_data(arrays, latent=2), arrays, out=tmp_path / "run", **options)

    train(("a", "b"), 0)
    for names, seed in ((("a", "b"), 1), (("x", "y"), 0)):
        with pytest.raises(UsageError, match="sha256"):
            train(names, seed)


def test_a_model_for_other_data_is_refused() -> None:
    small, large = Pendulum(size=32), Pendulum(size=64)
    with pytest.raises(UsageError, match=r"32 x 32 x 3.*64 x 64 x 3"):
        fit(VAE.for_data(small, latent=2), large, steps=1)
    images = np.zeros((60, 32, 32, 3), np.uint8)
    other = Arrays(images=images, factors=np.random.default_rng(0).normal(size=(60, 4)))
    causal = CausalVAE.for_data(small, edges=tuple(small.graph.edges))
    with pytest.raises(UsageError, match=r"concepts are pendulum_angle.*factors are factor_0"):
        fit(causal, other, steps=1)
    with pytest.raises(UsageError, match="concepts"):
        evaluate(causal, other, "none")


def test_a_truth_value_is_not_the_number_that_it_equals() -> None:
    assert recipe_diff({"reset_inactive_latents": True}, {"reset_inactive_latents": 1}) == [
        "reset_inactive_latents was True, is 1"
    ]
    assert recipe_diff({"reset_inactive_latents": 1}, {"reset_inactive_latents": 1}) == []
