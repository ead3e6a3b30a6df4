"""One's own folder of images: what is wrong with it is said in one report, with places."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = ["file,height,colour"]
    for i in range(40):
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(
            tmp_path / f"{i}.png"
        )
        rows.append(f"{i}.png,{i / 7:.3f},{'red' if i % 3 else 'blue'}")
    (tmp_path / "concepts.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def edit(folder: Path, old: str, new: str) -> None:
    table = folder / "concepts.csv"
    text = table.read_text()
    assert old in text
    table.write_text(text.replace(old, new))


def test_a_sound_folder_is_called_so(command: Any, folder: Path) -> None:
    answer = command("data", "check", folder, "size=16")
    assert answer.code == 0, answer.err
    assert "valid: Folder(40 images of 16x16x3; height, colour)" in answer.out


def test_how_each_column_is_understood_is_told(command: Any, folder: Path) -> None:
    table = folder / "concepts.csv"
    head, *rows = table.read_text().splitlines()
    rows = [f"{row},{i % 7},{'' if i < 3 else i / 2}" for i, row in enumerate(rows)]
    table.write_text("\n".join([f"{head},species,age", *rows]))
    options = ["size=16", "allow_missing=true"]

    def told(*more: str) -> dict[str, list[str]]:
        answer = command("data", "check", folder, *options, *more)
        assert answer.code == 0, answer.err
        cells = [[*map(str.strip, line.split("│"))][1:-1] for line in answer.out.splitlines()]
        return {row[0]: row[1:] for row in cells if row}

    found = told()
    assert found["height"] == ["continuous", "0", "5.571", "", ""]
    assert found["colour"] == ["binary", "", "", "blue, red", ""]
    assert found["species"] == ["ordinal", "0", "6", "0, 1, 2, 3, 4, 5, ...", ""]
    assert found["age"] == ["continuous", "1.5", "19.5", "", "3"]
    named = told("kinds.species=categorical")
    assert named["species"] == ["categorical", "", "", "0, 1, 2, 3, 4, 5, ...", ""]
    assert told("kinds={species: categorical}") == named


def test_what_a_report_says_to_type_works_where_it_says(
    command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is named by a relative path is found from one place only."""
    monkeypatch.chdir(folder.parent)
    recipe = Path("own.yaml")
    recipe.write_text(
        f"data: {{name: folder, path: {folder.name}, size: 16}}\nmodel: {{name: vae}}\n"
        "training: {steps: 2, batch_size: 4, threads: 1, device: cpu}\n"
    )
    assert command("train", recipe, "--out", "kept/own").code == 0
    page = Path("kept/own/report.html").read_text()
    assert f"In the folder that has {folder.name}: train, evaluate" in page
    for line in ("evaluate kept/own", "train kept/own/recipe.yaml --out kept/own-again"):
        assert f"disentwine {line}" in page
        assert command(*line.split()).code == 0
    monkeypatch.chdir("kept")
    assert "from which folder the command is given" in command("evaluate", "own").err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["kinds.colr=categorical"], "Did you mean 'colour'"),
        (["kinds.colour=name"], "'categorical' or 'binary', got 'name'"),
        (["kinds=categorical", "kinds.colour=binary"], "'kinds' has a single value"),
        (["kind.colour=binary"], "Did you mean 'kinds'"),
    ],
)
def test_wrong_kinds_are_named(command: Any, folder: Path, options: list[str], reason: str) -> None:
    answer = command("data", "check", folder, *options)
    assert answer.code == 2
    assert reason in answer.err


def test_a_folder_trains(command: Any, folder: Path) -> None:
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        f"data: {{name: folder, path: {folder}, size: 16}}\n"
        "model: {name: vae, latent: 2, network: mlp}\n"
        "training: {steps: 2, batch_size: 4, threads: 1}\n"
    )
    answer = command("train", recipe)
    assert answer.code == 0, answer.err


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("3.png,0.429,", "3.png,nan,", ["line 5", "height"]),
        ("3.png,0.429,", "3.png,,", ["line 5", "height"]),
        ("7.png,1.000", "lost.png,1.000", ["lost.png", "line 9"]),
        ("8.png,1.143", "7.png,1.143", ["7.png", "line 10"]),
        ("9.png,1.286", "../9.png,1.286", ["../9.png", "line 11"]),
    ],
    ids=["nan", "empty", "missing file", "twice", "outside"],
)
def test_bad_rows_are_named(
    command: Any, folder: Path, old: str, new: str, places: list[str]
) -> None:
    edit(folder, old, new)
    answer = command("data", "check", folder)
    assert answer.code == 1
    for place in places:
        assert place in answer.err


def test_a_constant_concept_is_named(command: Any, folder: Path) -> None:
    edit(folder, ",blue", ",red")
    answer = command("data", "check", folder)
    assert answer.code == 1
    assert "colour" in answer.err


def test_a_text_file_named_png_is_named(command: Any, folder: Path) -> None:
    (folder / "5.png").write_text("not a picture")
    answer = command("data", "check", folder)
    assert answer.code == 1
    assert "5.png" in answer.err


def test_several_problems_come_together(command: Any, folder: Path) -> None:
    (folder / "5.png").write_text("not a picture")
    edit(folder, "7.png,1.000", "lost.png,1.000")
    answer = command("data", "check", folder)
    assert "5.png" in answer.err
    assert "lost.png" in answer.err
