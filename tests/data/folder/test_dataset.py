from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from disentwine.data.folder.dataset import Folder
from disentwine.data.images import read_image, write_image
from disentwine.errors import DataError, UsageError
from disentwine.runs.recipe import arguments_of, read_recipe

N = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for i in range(N):
        write_image(tmp_path / name(i), generator.integers(0, 256, (20, 30, 3), dtype=np.uint8))
    write(tmp_path)
    return tmp_path


def name(i: int) -> str:
    return f"images/{i:02}.{'jpg' if i % 2 else 'png'}"


def rows() -> list[list[object]]:
    return [[name(i), i / 4, "red" if i % 3 else "blue"] for i in range(N)]


def write(folder: Path, table: list[list[Any]] | None = None, header: str = "file,x,hue") -> None:
    lines = [",".join(map(str, row)) for row in (rows() if table is None else table)]
    (folder / "concepts.csv").write_text("\n".join([header, *lines]))


def report(folder: Path, **options: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        Folder(path=str(folder), **options)
    message = str(caught.value).removeprefix(f"{folder}: ")
    return [line.strip() for line in message.splitlines()]


def test_pictures_and_concepts_are_read(folder: Path) -> None:
    data = Folder(path=str(folder), size=16, edges=(("x", "hue"),))
    assert data.images.shape == (N, 16, 16, 3)
    for i in range(N):
        assert (data.images[i] == read_image(folder / name(i), size=16)).all()
    assert data.names == ("x", "hue")
    assert data.spec[1].values == ("blue", "red")
    assert data.column("x").tolist() == [i / 4 for i in range(N)]
    assert data.column("hue").tolist() == [float(i % 3 > 0) for i in range(N)]
    assert data.graph is not None
    assert list(data.graph.edges) == [("x", "hue")]
    assert sorted(np.concatenate(list(data.split.values()))) == list(range(N))
    assert len(data.split["test"]) == 2
    assert (data.path, data.table, data.size, data.seed) == (str(folder), "concepts.csv", 16, 0)


def test_grey_pictures(folder: Path) -> None:
    assert Folder(path=str(folder), size=8, channels=1).image_shape == (8, 8, 1)


def test_the_tables_split_is_honoured(folder: Path) -> None:
    parts = ["train"] * 6 + ["test"] * 4 + ["validation"] * 2
    table = [[*row, part] for row, part in zip(rows(), parts, strict=True)]
    write(folder, table, "file,x,hue,split")
    split = Folder(path=str(folder), size=8).split
    assert split["train"].tolist() == list(range(6))
    assert split["test"].tolist() == [6, 7, 8, 9]
    assert split["validation"].tolist() == [10, 11]
    write(folder, [[*row, "test"] for row in rows()], "file,x,hue,split")
    assert report(folder) == ["column 'split': no row has train; mark the rows to train on"]


def test_without_a_table_all_pictures_are_taken_by_name(folder: Path) -> None:
    (folder / "images" / "notes.md").write_text("not an image")
    data = Folder(path=str(folder / "images"), size=8)
    assert data.factors.shape == (N, 0)
    assert (data.images[3] == read_image(folder / name(3), size=8)).all()
    assert data.graph is None
    assert data.spec == ()


def test_a_table_of_files_only_gives_no_factors(folder: Path) -> None:
    write(folder, [row[:1] for row in rows()], "file")
    assert Folder(path=str(folder), size=8).factors.shape == (N, 0)


def test_a_table_by_another_name_is_not_passed_over(folder: Path) -> None:
    (folder / "concepts.csv").rename(folder / "labels.csv")
    assert "pass table='labels.csv'" in report(folder)[0]
    assert len(Folder(path=str(folder), table="labels.csv", size=8).names) == 2
    assert "no such table" in report(folder, table="label.csv")[0]
    assert "no PNG or JPEG images" in report(folder, table="")[0]


def test_everything_wrong_comes_in_one_report(folder: Path) -> None:
    (folder / name(1)).write_text("text named .jpg")
    whole = (folder / name(2)).read_bytes()
    (folder / name(2)).write_bytes(whole[: len(whole) // 2])
    table = [[*row, 5] for row in rows()]
    table[4][0] = "images/none.png"
    table[5][0] = "../outside.png"
    table[6][0] = "/etc/passwd"
    table[7][0] = "C:\\outside.png"
    table[8][0] = name(0)
    table[9][1] = "nan"
    write(folder, table, "file,x,hue,same")
    found = report(folder)
    expected = [
        ("line 10, column 'file'", "is already in line 2"),
        ("line 11, column 'x'", "'nan' is not a label"),
        ("column 'same'", "constant"),
        ("line 3, column 'file'", "01.jpg: neither PNG nor JPEG"),
        ("line 4, column 'file'", "02.png: damaged image"),
        ("line 6, column 'file'", "no image 'images/none.png'"),
        ("line 7, column 'file'", "'../outside.png' is outside the folder"),
        ("line 8, column 'file'", "'/etc/passwd' is outside the folder"),
        ("line 9, column 'file'", "'C:\\outside.png' is outside the folder"),
    ]
    assert found[0] == "9 problems"
    assert len(found) == len(expected) + 1
    for line, (place, reason) in zip(found[1:], expected, strict=True):
        assert line.startswith(place)
        assert reason in line


def test_many_problems_are_counted(folder: Path) -> None:
    write(folder, [[f"none{i}.png", i / 4, "ab"[i % 2]] for i in range(30)])
    found = report(folder)
    assert (found[0], len(found), found[-1]) == ("30 problems", 12, "and 20 more")


@pytest.mark.parametrize("count", [1, 9])
def test_a_few_rows_are_too_few(folder: Path, count: int) -> None:
    write(folder, rows()[:count])
    assert report(folder) == [
        f"images: only {count}; at least 10 are needed for training and testing"
    ]


def test_empty_cells_are_nan_only_when_allowed(folder: Path) -> None:
    table = rows()
    table[2][1] = ""
    write(folder, table)
    assert report(folder) == [
        "line 4, column 'x': no label; fill it in, or pass allow_missing=True"
    ]
    data = Folder(path=str(folder), size=8, allow_missing=True)
    assert np.flatnonzero(np.isnan(data.column("x"))).tolist() == [2]


def test_numbers_can_be_names(folder: Path) -> None:
    write(folder, [[name(i), i / 4, i % 6] for i in range(N)], "file,x,species")
    assert Folder(path=str(folder), size=8).spec[1].kind == "ordinal"
    data = Folder(path=str(folder), size=8, kinds={"species": "categorical"})
    assert data.spec[1].kind == "categorical"
    assert data.spec[1].values == tuple("012345")
    assert data.kinds == {"species": "categorical"}


def test_a_recipe_says_kinds_and_keeps_them(folder: Path) -> None:
    write(folder, [[name(i), i / 4, i % 6] for i in range(N)], "file,x,species")
    (folder / "recipe.yaml").write_text(
        f"data: {{name: folder, path: {folder}, size: 8}}\nmodel: {{name: vae}}\n"
    )
    plain = read_recipe(folder / "recipe.yaml")
    assert plain.build_dataset().spec[1].kind == "ordinal"
    stated = read_recipe(folder / "recipe.yaml", ["data.kinds.species=categorical"])
    data = stated.build_dataset()
    assert data.spec[1].kind == "categorical"
    assert arguments_of(data) == {key: stated.data[key] for key in stated.data if key != "name"}
    with pytest.raises(UsageError, match=r"data\.kinds: .*'categorical' or 'binary', got 'name'"):
        read_recipe(folder / "recipe.yaml", ["data.kinds.species=name"])


def test_kinds_need_a_table(folder: Path) -> None:
    with pytest.raises(UsageError, match="no column 'x'"):
        Folder(path=str(folder / "images"), kinds={"x": "ordinal"})


def test_a_name_with_a_null_byte_is_a_missing_picture(folder: Path) -> None:
    table = rows()
    table[0][0] = "a\0.png"
    write(folder, table)
    assert report(folder)[0].startswith("line 2, column 'file'")


def test_a_huge_picture_is_one_more_problem(folder: Path) -> None:
    Image.new("1", (8000, 8000)).save(folder / name(0))
    assert "megapixels" in report(folder)[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"edges": (("x", "hu"),)}, "Did you mean 'hue'"),
        ({"edges": (("x", "hue"), ("hue", "x"))}, "a cycle"),
        ({"kinds": {"hu": "categorical"}}, "kinds: there is no column 'hu'. Did you mean 'hue'"),
        (
            {"kinds": {"hue": "name"}},
            "'hue' is 'name'; choose from continuous, ordinal, categorica",
        ),
        ({"kinds": {"file": "ordinal"}}, "kinds: there is no column 'file'"),
        ({"size": 0}, "size=0"),
        ({"channels": 2}, "channels=2"),
        ({"test": 1.0}, "leave images for training"),
    ],
)
def test_wrong_arguments_are_named(folder: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Folder(path=str(folder), **options)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Folder(path=str(tmp_path / "none"))
