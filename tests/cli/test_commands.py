"""The street end to end: train, resume, refuse, evaluate, report, list."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from disentwine.errors import StorageError

TINY = """
data: {name: pendulum, size: 32}
model: {name: beta-vae, latent: 3, network: mlp}
training: {steps: 6, batch_size: 8, save_every: 3, log_every: 2, threads: 1}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def tiny_run(command: Any, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what `train` writes for the recipe."""
    run, kept = Path("runs/tiny"), tmp_path_factory.getbasetemp() / "tiny-run"
    if kept.exists():
        shutil.copytree(kept, run)
    else:
        assert command("train", recipe).code == 0
        shutil.copytree(run, kept)
    return run


def test_train_evaluate_report_runs(command: Any, recipe: Path) -> None:
    trained = command("train", recipe, "model.beta=2")
    assert trained.code == 0, trained.err
    assert "report.html" in trained.out
    assert "reconstruction-error" in trained.out
    run = Path("runs/tiny")
    assert "beta: 2" in (run / "recipe.yaml").read_text()
    page = (run / "report.html").read_text()
    assert "<img" in page
    assert "http" not in page.replace("http://www.w3.org", "")

    scores = json.loads(command("evaluate", run, "--json").out)
    assert {"loss", "kl", "reconstruction-error"} <= {score["name"] for score in scores}
    assert all(score["n"] == 1826 for score in scores)

    (run / "report.html").unlink()
    assert command("report", run).code == 0
    assert (run / "report.html").exists()

    listed = command("runs")
    assert "beta-vae" in listed.out
    assert "finished" in listed.out
    assert command("runs", run).out.count("finished") == 1

    above = command("runs", ".")
    assert "1 more: disentwine runs runs" in above.out
    assert "finished" not in above.out


def test_the_command_to_go_on_with_can_be_copied(command: Any, recipe: Path) -> None:
    shown = command("train", recipe, "--out", "runs/my run")
    assert shown.out.splitlines()[-1] == "to explore it: disentwine serve 'runs/my run'"


def test_a_finished_run_is_not_overwritten(command: Any, recipe: Path, tiny_run: Path) -> None:
    before = {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}
    again = command("train", recipe)
    assert again.code == 2
    assert "never overwritten" in again.err
    assert before == {path: path.read_bytes() for path in Path("runs").rglob("*") if path.is_file()}


def test_another_recipe_in_the_same_folder_is_refused(
    command: Any, recipe: Path, tiny_run: Path
) -> None:
    other = command("train", recipe, "model.latent=4")
    assert other.code == 2
    assert "model.latent was 3, is 4" in other.err
    assert "resuming" not in command("train", recipe, "training.steps=9").err


def test_ctrl_c_is_answered(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("disentwine.runs.run.find_runs", pressed)
    answer = command("runs", ".")
    assert answer.code == 130
    assert answer.err == "disentwine: stopped\n"


def test_these_tests_fail_where_a_user_would_see_a_traceback(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disentwine.runs.run.find_runs", lambda _: 1 / 0)
    with pytest.raises(
        pytest.fail.Exception, match=r"'disentwine runs \.' ends in a traceback: Zero"
    ):
        command("runs", ".")


def test_the_likelihood_is_measured_when_it_is_named(
    command: Any, recipe: Path, tiny_run: Path
) -> None:
    assert "log-likelihood" not in command("evaluate", tiny_run).out
    words = ("evaluate", tiny_run, "--metrics", "log-likelihood")
    assert (
        "a lower bound in nats, from 3 samples per image" in command(*words, "--samples", "3").out
    )
    scores = {s["name"]: s for s in json.loads(command(*words, "--json").out)}
    assert scores["log-likelihood"]["n"] == 1000
    assert scores["log-likelihood"]["details"]["samples"] == 100
    assert scores["log-likelihood"]["value"] > -scores["reconstruction"]["value"] - 10
    assert not {"mig", "sap"} & scores.keys()
    both = ("evaluate", tiny_run, "--metrics", "mig,log-likelihood", "--samples", "3")
    assert "mig" in command(*both).out

    assert command("train", recipe, "model.name=wae-mmd", "--out", "runs/wae").code == 0
    without = command("evaluate", "runs/wae", "--metrics", "log-likelihood")
    assert "log-likelihood does not apply: the model does not estimate" in without.out


def test_a_recipe_finds_the_run_it_starts_with_from_its_own_folder(
    command: Any, recipe: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("train", recipe, "training.init_from=runs/tiny", "--out", "runs/tuned").code == 0
    monkeypatch.chdir("runs")
    again = command("train", "tuned/recipe.yaml", "--out", "tuned-again")
    assert again.code == 0, again.err
    assert f"{Path.cwd() / 'tiny'} is used" in again.err
    before, after = (Path(name, "recipe.yaml").read_text() for name in ("tuned", "tuned-again"))
    assert before == after


def test_all_problems_of_a_recipe_come_in_one_report(command: Any, recipe: Path) -> None:
    answer = command(
        "train", recipe, "model.latnet=4", "training.steps=0", "sede=1", "data.size=big"
    )
    assert answer.code == 2
    for line in (
        "model.latnet: unknown key. Did you mean 'latent'?",
        "sede: unknown section. Did you mean 'seed'?",
        "training.steps",
        "data.size",
    ):
        assert line in answer.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["train", "no-such-recipe"], "no recipe file or ready recipe"),
        (["train", "no-such.yaml"], "there is no file no-such.yaml"),
        (
            ["train", "demo", "training.init_from=nowhere"],
            "training.init_from: nowhere is not a run",
        ),
        (["train"], "--list"),
        (["train", "demo", "beta"], "key=value"),
        (["train", "demo", "model.name=betavae"], "Did you mean 'beta-vae'?"),
        (["train", "demo", "data=pendulums"], "Did you mean 'pendulum'?"),
        (["train", "ladder-vae-mnist", "model.layers=16,8"], "a list in brackets, such as [16,8]"),
        (["evaluate", "nowhere"], "is not a run folder"),
        (["evaluate", "nowhere", "--baselines", "pca, grund-truth"], "mean 'ground-truth'?"),
        (["evaluate", "nowhere", "--evaluators", "grahp"], "mean 'graph'?"),
        (["runs", "nowhere"], "there is no folder nowhere"),
        (["study", "labels", "--stages", "9"], "stages: the study labels has 1, got 9"),
        (["data", "show", "pendulm"], "Did you mean 'pendulum'?"),
        (["data", "show", "pendulum", "sise=64"], "Did you mean 'size'?"),
        (["data", "show", "pendulum", "size=7"], "size"),
    ],
)
def test_wrong_words_are_answered_with_a_remedy(command: Any, words: list[str], hint: str) -> None:
    answer = command(*words)
    assert answer.code == 2
    assert hint in answer.err


def test_a_file_that_is_no_recipe_is_refused(command: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    for content, hint in (
        (b"data: [unclosed", "not valid YAML"),
        (b"just words", "a recipe is a list of sections"),
        (b"\xff\xfe\x00\x01", "cannot be read as text"),
    ):
        broken.write_bytes(content)
        answer = command("train", broken)
        assert answer.code == 2
        assert hint in answer.err


def test_ready_recipes_are_listed_and_sound(command: Any) -> None:
    from disentwine.runs.recipe import read_recipe, ready_recipes

    listed = command("train", "--list").out
    for name in ready_recipes():
        assert name in listed
        assert read_recipe(name).model["name"]


def test_data_list_and_show(command: Any) -> None:
    listed = command("data", "list").out
    assert "pendulum" in listed
    shown = command("data", "show", "pendulum", "size=32", "--out", "grid.png")
    assert shown.code == 0, shown.err
    assert "light_angle -> shadow_length" in shown.out
    assert Path("grid.png").stat().st_size > 1000


def test_missing_data_files_are_named(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISENTWINE_DATA", raising=False)
    answer = command("data", "check", "mnist")
    assert answer.code == 1
    assert "DISENTWINE_DATA" in answer.err
    assert "ubyte" in answer.err


def test_a_finished_demo_is_shown_again(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from disentwine.runs import recipe as recipes

    monkeypatch.setattr(recipes, "ready_recipes", lambda: {"demo": TINY})
    first = command("demo")
    assert first.code == 0, first.err
    again = command("demo")
    assert again.code == 0
    assert "already finished" in again.out
    assert first.out.splitlines()[-1] == again.out.splitlines()[-1]
    assert command("train", "demo", "model.latent=7", "--out", "runs/other").code == 0
    other = command("demo", "--out", "runs/other")
    assert other.code == 2
    assert "model.latent was 7" in other.err


def test_scores_are_told_also_where_they_cannot_be_kept(
    command: Any, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr("disentwine.runs.run.keep_scores", full)
    answer = command("evaluate", tiny_run, "--metrics", "none")
    assert answer.code == 0, answer.err
    assert "reconstruction-error" in answer.out
    assert "does not keep all of this: the disk is full" in answer.err


def test_a_read_only_run_is_evaluated(tiny_run: Path) -> None:
    shutil.rmtree(tiny_run / "figures")
    before = sorted(tiny_run.rglob("*"))
    for folder in (tiny_run, *tiny_run.rglob("*/")):
        folder.chmod(0o555)
    # Permissions do not bind root, who can go without that privilege.
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("as root this needs setpriv")
    words = ["evaluate", str(tiny_run), "--metrics", "mig", "--baselines", "pca, ground-truth"]
    answer = subprocess.run(
        [*(bound if os.geteuid() == 0 else []), sys.executable, "-m", "disentwine", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "mig" in answer.stdout
    assert "ground-truth" in answer.stdout
    assert "does not keep all of this: cannot write" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert sorted(tiny_run.rglob("*")) == before


def test_scores_are_told_where_pictures_cannot_be_kept(command: Any, tiny_run: Path) -> None:
    shutil.rmtree(tiny_run / "figures")
    (tiny_run / "figures").write_text("in the way")
    answer = command("evaluate", tiny_run, "--metrics", "mig")
    assert answer.code == 0, answer.err
    assert "mig" in answer.out
    assert "figure:" not in answer.out
    assert "cannot write runs/tiny/figures" in answer.err


def test_the_command_is_also_a_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["disentwine", "--version"])
    with pytest.raises(SystemExit):
        runpy.run_module("disentwine", run_name="__main__")
    assert capsys.readouterr().out == f"disentwine {version('disentwine')}\n"
