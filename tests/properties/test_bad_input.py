"""What cannot be read, written or held is one line with a remedy, never a traceback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

LONG = "x" * 300


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["train", "demo", "seed=2020-99-99"], "'seed=2020-99-99': the value is not valid YAML"),
        (["train", "demo", "model.beta=0x_"], "'model.beta=0x_': the value is not valid YAML"),
        (
            ["train", "demo", "training.threads=10000000000"],
            "training.threads: input should be less",
        ),
        (
            ["train", "demo", "model.name=vae", f"model.latent={10**20}"],
            "model.latent: input should be less",
        ),
        (["train", LONG], "cannot be read as text"),
        (["train", "demo", "--out", LONG], "name too long"),
        (["train", "demo", f"training.init_from={LONG}"], "is not a run folder; name that of a"),
        (["evaluate", LONG], "cannot read xxx"),
        (["runs", LONG], "name too long"),
        (["data", "show", "pendulum", "--out", "nowhere/x.png"], "there is no folder nowhere"),
        (["data", "show", "pendulum", "--out", "."], ". exists already"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_words_are_one_line(command: Any, words: list[str], hint: str) -> None:
    answer = command(*words)
    assert answer.code in (1, 2)
    assert hint in answer.err
    assert not Path("runs").exists()


@pytest.mark.parametrize("size", [(2**62,), (2**62, 2**62), (2**31, 2**31, 2**31)])
def test_want_of_memory_is_one_line(
    command: Any, size: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disentwine.runs.run.find_runs", lambda _: torch.empty(size))
    answer = command("runs", ".")
    assert answer.code == 1
    assert "there is not enough memory; try a smaller model" in answer.err
    assert answer.err.count("\n") == 1


def test_a_picture_is_not_overwritten(command: Any) -> None:
    Path("mine.png").write_text("mine")
    answer = command("data", "show", "pendulum", "size=32", "--out", "mine.png")
    assert answer.code == 2
    assert "choose another --out" in answer.err
    assert Path("mine.png").read_text() == "mine"


@pytest.fixture
def closed(tmp_path: Path, without_permissions: Any) -> Iterator[Path]:
    """A run in a folder that nobody may look into."""
    folder = tmp_path / "closed"
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "recipe.yaml").write_text("")
    folder.chmod(0)
    with without_permissions():
        yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [("evaluate", "run"), ("report", "run"), ("train", "run/recipe.yaml"), ("runs", "run")],
    ids=" ".join,
)
def test_a_folder_without_rights_is_one_line(
    command: Any, closed: Path, words: tuple[str, str]
) -> None:
    verb, name = words
    answer = command(verb, closed / name)
    assert answer.code in (1, 2)
    assert "ermission denied" in answer.err
    assert answer.err.count("\n") == 1


def test_a_status_that_cannot_be_read_is_told(command: Any) -> None:
    run = Path("runs/demo")
    (run / "status.json").mkdir(parents=True)
    (run / "recipe.yaml").write_text("data: pendulum\nmodel: vae\n")
    listed = command("runs")
    assert listed.code == 0
    assert "unreadable: cannot read runs/demo/status.json" in listed.out
    shown = command("demo")
    assert shown.code == 1
    assert "cannot read runs/demo/status.json" in shown.err
