from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from disentwine.data.folder.table import read_table
from disentwine.errors import DataError


def write(folder: Path, content: str, encoding: str = "utf-8", name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv_as_spreadsheets_write_it(
    tmp_path: Path, delimiter: str, encoding: str, newline: str
) -> None:
    rows = [["file", "höhe"], ['"a.png"', "1.5"], ["b.png", " 2.5 "], [], ["c.png", "4"]]
    table = read_table(write(tmp_path, newline.join(map(delimiter.join, rows)), encoding))
    assert table.files == ("a.png", "b.png", "c.png")
    assert table.rows == ("line 2", "line 3", "line 5")
    assert [factor.name for factor in table.spec] == ["höhe"]
    assert table.factors.tolist() == [[1.5], [2.5], [4]]
    assert table.split is None


def test_a_comma_in_a_name_does_not_mislead(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "file;length, width, cm\na.png;1.5\nb.png;2.5\nc.png;3"))
    assert [factor.name for factor in table.spec] == ["length, width, cm"]


def test_no_concepts_is_a_table_too(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "file\na.png\nb.png"))
    assert table.factors.shape == (2, 0)


def test_the_split_column_is_no_concept(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "file,split,x\na,train,1.5\nb,test,2.5\nc,validation,9"))
    assert table.split == ("train", "test", "validation")
    assert [factor.name for factor in table.spec] == ["x"]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_file_and_split_may_be_in_any_case(tmp_path: Path, delimiter: str) -> None:
    rows = ["FILE,Split,Hue", "a,train,1.5", "b,test,2.5", "c,validation,9"]
    table = read_table(write(tmp_path, "\n".join(rows).replace(",", delimiter)))
    assert table.files == ("a", "b", "c")
    assert table.split == ("train", "test", "validation")
    assert [factor.name for factor in table.spec] == ["Hue"]


def test_all_problems_come_in_one_report(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "file,age,hue,same,split\n"
        "a.png,1,red,5,train\n"
        "a.png,nan,blue,5,train\n"
        "c.png,,green,5,dev\n"
        ",3,red,5,test\n"
        "short\n"
        "./a.png,old,,5,test\n",
    )
    with pytest.raises(DataError) as caught:
        read_table(path)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert lines[0] == "t.csv: 10 problems"
    expected = [
        "line 6: 1 cells under 5 names",
        "line 3, column 'file': 'a.png' is already in line 2; keep one",
        "line 5, column 'file': empty",
        "line 7, column 'file': './a.png' is already in line 2",
        "line 3, column 'age': 'nan' is not a label",
        "line 4, column 'age': no label",
        "line 7, column 'age': 'old' is not a number",
        "line 7, column 'hue': no label",
        "column 'same': constant, always 5",
        "line 4, column 'split': 'dev' is not train, validation or test",
    ]
    assert len(lines) == len(expected) + 1
    for line, start in zip(lines[1:], expected, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no column 'file'"),
        ("file,x", "a header but no rows"),
        ("file,x\na.png", "line 2: 1 cells under 2 names"),
        ("filename,x\na,1\nb,2", "no column 'file' .* Did you mean 'filename'"),
        ("file,x,x\na,1,2", "two columns are named 'x'"),
        ("file,File,x\na,b,2", "two columns are named 'file'"),
        ("file,x,\na,1,2", "column 3 has no name"),
        ('file,x\na,1\nb,"2', "line 3: .*correct its quotes"),
        ("file,x\na," + "9" * 200_000, "line 2"),
    ],
)
def test_a_broken_csv_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_table(write(tmp_path, content))


def test_other_encodings_and_kinds_are_refused(tmp_path: Path) -> None:
    for encoding in ("utf-16", "latin-1"):
        with pytest.raises(DataError, match="save it as 'CSV UTF-8'"):
            read_table(write(tmp_path, "file,höhe\na.png,1", encoding))
    with pytest.raises(DataError, match="save it as CSV"):
        read_table(write(tmp_path, "", name="t.xlsx"))
    with pytest.raises(DataError, match="no such table"):
        read_table(tmp_path / "none.csv")


def test_quoted_lines_keep_the_count(tmp_path: Path) -> None:
    path = write(tmp_path, 'file,note,x\na.png,"two\nlines",1\nb.png,b,inf\nc.png,b,2\nd.png,b,3')
    with pytest.raises(DataError, match=r"t\.csv: line 4, column 'x': 'inf'"):
        read_table(path)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'disentwine\[parquet\]'"):
        read_table(write(tmp_path, "", name="t.parquet"))


class TestParquet:
    def write(self, folder: Path, columns: dict[str, list[object]]) -> Path:
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
        return folder / "t.parquet"

    def test_it_says_what_a_csv_would(self, tmp_path: Path) -> None:
        path = self.write(
            tmp_path,
            {
                "file": ["a", "b", "c"],
                "size": [1.5, None, 2.5],
                "on": [True, False, None],
                "hue": ["red", None, "blue"],
            },
        )
        table = read_table(path, allow_missing=True)
        assert [factor.kind for factor in table.spec] == ["binary", "binary", "binary"]
        nan = np.nan
        np.testing.assert_array_equal(table.factors, [[1.5, 1, 1], [nan, 0, nan], [2.5, nan, 0]])
        with pytest.raises(DataError, match="row 2, column 'size': no label"):
            read_table(path)

    def test_names_in_any_case_and_words_for_nothing(self, tmp_path: Path) -> None:
        hue = ["red", "N/A", "blue"]
        path = self.write(tmp_path, {"File": ["a", "b", "c"], "Hue": hue})
        table = read_table(path, allow_missing=True)
        assert table.files == ("a", "b", "c")
        np.testing.assert_array_equal(table.factors[:, 0], [1, np.nan, 0])

    def test_numbers_can_be_names(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, {"file": ["a", "b", "c"], "species": [7, 0, 3]})
        table = read_table(path, kinds={"species": "categorical"})
        assert table.spec[0].values == ("0", "3", "7")
        assert table.factors[:, 0].tolist() == [2, 0, 1]

    def test_wrong_types_and_damage_are_refused(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, {"file": ["a", "b"], "x": [[1], [2]]})
        with pytest.raises(DataError, match="column 'x': type list"):
            read_table(path)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DataError, match=r"t\.parquet: "):
            read_table(path)
