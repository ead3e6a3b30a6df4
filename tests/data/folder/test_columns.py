from __future__ import annotations

import numpy as np
import pytest

from disentwine.core.dataset import Factor
from disentwine.core.types import Kind
from disentwine.data.folder.columns import Problems, number_column, text_column
from disentwine.errors import DataError


def line(row: int) -> str:
    return f"line {row + 2}"


def text(
    cells: list[str], allow_missing: bool = False, kind: Kind | None = None
) -> tuple[Factor, np.ndarray, list[str]]:
    problems = Problems("t")
    factor, values = text_column(
        "x", cells, where=line, problems=problems, allow_missing=allow_missing, kind=kind
    )
    return factor, values, problems.listed


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["0.5", "1", "-2e3"], "continuous", ()),
        (["0", "1", "0"], "binary", (0.0, 1.0)),
        (["-1", "1", "1"], "binary", (-1.0, 1.0)),
        (["3", "1", "2", "3"], "ordinal", (1.0, 2.0, 3.0)),
        ([str(i) for i in range(20)], "ordinal", tuple(map(float, range(20)))),
        ([str(i) for i in range(21)], "continuous", ()),
        (["b", "a", "c"], "categorical", ("a", "b", "c")),
        (["yes", "no", "yes"], "binary", ("no", "yes")),
        (["1_000", "a", "b"], "categorical", ("1_000", "a", "b")),
        (["TRUE", "true", "False", "FALSE"], "binary", ("false", "true")),
        (["Yes", "NO", "yes"], "binary", ("no", "yes")),
        (["Red", "red", "blue"], "categorical", ("Red", "blue", "red")),
        (["\N{MINUS SIGN}1", "1", "-1"], "binary", (-1.0, 1.0)),
        (["e4", "d5", "c6"], "categorical", ("c6", "d5", "e4")),
        (["1.2.3", "1.2.4", "2.0.0"], "categorical", ("1.2.3", "1.2.4", "2.0.0")),
    ],
)
def test_kinds_are_inferred(cells: list[str], kind: str, values: tuple[object, ...]) -> None:
    factor, _, problems = text(cells)
    assert (factor.kind, factor.values, problems) == (kind, values, [])


def test_numbers_stay_and_texts_become_indices() -> None:
    assert text(["-1", "1", "-1"])[1].tolist() == [-1, 1, -1]
    assert text(["b", "a", "c"])[1].tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["1", "", "3"], "line 3, column 'x': no label; fill it in, or pass allow_missing=True"),
        (["1", "NaN", "3"], "line 3, column 'x': 'NaN' is not a label"),
        (["1", "2", "-inf"], "line 4, column 'x': '-inf' is not a label"),
        (["a", "nan", "b"], "line 3, column 'x': 'nan' is not a label"),
        (["1", "2", "1e999"], "line 4, column 'x': not a finite number"),
        (["1", "two", "3"], "line 3, column 'x': 'two' is not a number, as most"),
        (["1", "2", "3,5"], "line 4, column 'x': '3,5' is not a number; write 3.5"),
        (["1", "2", "1,234"], "line 4, column 'x': '1,234' is not a number; write 1.234 or 1234, "),
        (["1", "2", "0,234"], "line 4, column 'x': '0,234' is not a number; write 0.234"),
        (["1", "2", "1.234,5"], "line 4, column 'x': '1.234,5' is not a number; write 1234.5"),
        (["1", "2", "1,234,567"], "line 4, column 'x': '1,234,567' is not a number; write 1234567"),
        (["1", "2", "10%"], "line 4, column 'x': '10%' is not a number; write 0.1"),
        (["1", "2", "12,5 %"], "line 4, column 'x': '12,5 %' is not a number; write 0.125"),
        (
            ["1", "none", "3"],
            "line 3, column 'x': 'none' is not a label; fill it in, or pass allow_m",
        ),
        (["a", "None", "b"], "line 3, column 'x': 'None' may be a name or a missing label"),
        (
            ["a", "none", "b", "none"],
            "line 3, column 'x': 'none' in 2 rows may be a name or a missing",
        ),
        (["7", "7", "7"], "column 'x': constant, always 7"),
        (["a", "a", "a"], "column 'x': constant, always a"),
        ([f"note {i}" for i in range(30)], "column 'x': a different text in every row"),
    ],
)
def test_each_problem_is_named_once(cells: list[str], problem: str) -> None:
    problems = text(cells)[2]
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize("word", ["NA", "n/a", "#N/A", "Null", "NaN", "-", "\N{MINUS SIGN}", "?"])
@pytest.mark.parametrize("others", [("1.5", "2.5", "3"), ("red", "blue", "red")])
def test_words_for_nothing_are_missing_labels(word: str, others: tuple[str, ...]) -> None:
    cells = [*others, word]
    refused = f"line 5, column 'x': '{word}' is not a label; fill it in, or pass allow_missing=True"
    assert text(cells)[2] == [refused]
    factor, values, problems = text(cells, allow_missing=True)
    assert problems == []
    assert factor == text(list(others))[0]
    assert np.isnan(values).tolist() == [False, False, False, True]


def test_none_is_missing_among_numbers_and_never_guessed_among_names() -> None:
    assert np.isnan(text(["1.5", "None", "3.5", "2"], allow_missing=True)[1][1])
    assert "may be a name" in text(["short", "none", "long"], allow_missing=True)[2][0]


def test_infinity_is_refused_also_where_labels_may_be_missing() -> None:
    assert "'inf' is not a label" in text(["1", "inf", "3"], allow_missing=True)[2][0]


@pytest.mark.parametrize("cells", [["1,5", "2,5", "3,25"], ["10%", "20%", "5%"]])
def test_numbers_written_otherwise_never_become_categories(cells: list[str]) -> None:
    assert len(text(cells)[2]) == 3 + 1  # and no usable value


def test_empty_cells_are_nan_when_allowed() -> None:
    factor, values, problems = text(["1.5", "", "3.5", "2"], allow_missing=True)
    assert not problems
    assert np.isnan(values).tolist() == [False, True, False, False]
    factor, values, problems = text(["a", "", "b"], allow_missing=True)
    assert (factor.kind, factor.values, problems) == ("binary", ("a", "b"), [])
    assert np.isnan(values[1])
    assert text(["", "", ""], allow_missing=True)[2] == [
        "column 'x': no usable value in any row; remove the column"
    ]


def test_a_kind_can_be_stated() -> None:
    problems = Problems("t")
    values = np.array([3.0, 0.5, np.nan, 3.0])
    factor, codes = number_column(
        "x", values, where=line, problems=problems, allow_missing=True, kind="categorical"
    )
    assert factor.values == ("0.5", "3")
    np.testing.assert_array_equal(codes, [1, 0, np.nan, 1])
    assert number_column("x", np.arange(3.0), where=line, problems=problems, kind="continuous")[
        0
    ] == Factor("x", "continuous")
    assert not problems.count
    number_column("x", np.arange(3.0), where=line, problems=problems, kind="binary")
    assert problems.listed == ["column 'x': 3 distinct values, but declared binary"]


@pytest.mark.parametrize(
    ("cells", "kind", "values", "codes"),
    [
        (["2", "10", "0", "2"], "categorical", ("0", "2", "10"), [1, 2, 0, 1]),
        (["2", "x", "0", "2"], "categorical", ("0", "2", "x"), [1, 2, 0, 1]),
        (["10%", "20%", "1,5"], "categorical", ("1,5", "10%", "20%"), [1, 2, 0]),
        (["short", "None", "long", "none"], "categorical", ("long", "none", "short"), [2, 1, 0, 1]),
        (["b", "a", "b"], "categorical", ("a", "b"), [1, 0, 1]),
        (["b", "a", "b"], "binary", ("a", "b"), [1, 0, 1]),
        (["0", "1", "2"], "continuous", (), [0, 1, 2]),
        (["0.5", "1.5", "2.5"], "ordinal", (0.5, 1.5, 2.5), [0.5, 1.5, 2.5]),
    ],
)
def test_the_kind_of_text_can_be_stated(
    cells: list[str], kind: Kind, values: tuple[object, ...], codes: list[float]
) -> None:
    factor, found, problems = text(cells, kind=kind)
    assert (factor, problems) == (Factor("x", kind, values=values), [])  # type: ignore[arg-type]
    assert found.tolist() == codes


def test_a_missing_label_is_missing_also_among_stated_names() -> None:
    assert "'NA' is not a label" in text(["0", "NA", "1", "2"], kind="categorical")[2][0]
    factor, values, _ = text(["0", "NA", "1", "2"], allow_missing=True, kind="categorical")
    assert factor.values == ("0", "1", "2")
    assert np.isnan(values[1])


@pytest.mark.parametrize(
    ("cells", "kind", "problem"),
    [
        (["low", "1", "2"], "ordinal", "line 2, column 'x': 'low' is not a number; ordinal values"),
        (["a", "b", "c"], "binary", "column 'x': 3 distinct values, but declared binary"),
    ],
)
def test_a_stated_kind_that_does_not_fit_is_refused(
    cells: list[str], kind: Kind, problem: str
) -> None:
    assert text(cells, kind=kind)[2][0].startswith(problem)


def test_the_report_lists_ten_and_counts_the_rest() -> None:
    problems = Problems("table.csv")
    for i in range(1234):
        problems.add(f"problem {i}")
    with pytest.raises(DataError) as caught:
        problems.raise_any()
    lines = str(caught.value).splitlines()
    assert lines[0] == "table.csv: 1,234 problems"
    assert lines[1:11] == [f"  problem {i}" for i in range(10)]
    assert lines[11:] == ["  and 1,224 more"]


def test_no_problem_raises_nothing() -> None:
    Problems("table.csv").raise_any()
