"""Read CSV and Parquet tables of concepts into factors."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import numpy as np

from disentwine.core.dataset import Factor
from disentwine.core.types import FloatArray, Kind, SplitName
from disentwine.data.folder.columns import Problems, Where, check_kinds, number_column, text_column
from disentwine.errors import DataError, did_you_mean

RESERVED_COLUMNS = ("file", "split")
"""Columns that are not concepts; the case of their names is ignored."""

Columns = Mapping[str, Sequence[str] | FloatArray]


def read_csv(path: Path, problems: Problems) -> tuple[list[str], Columns]:
    """Row descriptions for errors, and text columns by name."""
    rows: list[str] = []
    records: list[list[str]] = []
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = _delimiter(file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = _checked_header(path, next(reader, []))
            line = reader.line_num
            for record in reader:
                if record and len(record) != len(header):
                    problems.add(f"line {line + 1}: {len(record)} cells under {len(header)} names")
                elif record:
                    rows.append(f"line {line + 1}")
                    records.append([cell.strip() for cell in record])
                line = reader.line_num
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text; save it as 'CSV UTF-8'") from error
    except csv.Error as error:
        raise DataError(f"{path}: line {line + 1}: {error}; correct its quotes") from error
    cells = zip(*records, strict=True) if records else ([] for _ in header)
    return rows, dict(zip(header, map(list, cells), strict=True))


def _delimiter(header: str) -> str:
    def fit(delimiter: str) -> tuple[bool, int]:
        names = [name.strip().strip('"') for name in header.split(delimiter)]
        return "file" in map(str.lower, names), len(names)

    return max(",;\t", key=fit)


def _checked_header(path: Path, names: Sequence[str]) -> list[str]:
    header: list[str] = []
    for number, name in enumerate(map(str.strip, names), start=1):
        name = name.lower() if name.lower() in RESERVED_COLUMNS else name
        if not name:
            raise DataError(f"{path}: line 1: column {number} has no name; name or remove it")
        if name in header:
            raise DataError(f"{path}: line 1: two columns are named '{name}'; rename one")
        header.append(name)
    return header


def read_parquet(path: Path, problems: Problems) -> tuple[list[str], Columns]:
    """Row descriptions for errors, and columns of numbers or text by name."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            f"{path}: Parquet needs pyarrow; pip install 'disentwine[parquet]', or save it as CSV"
        ) from error
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: damaged Parquet ({reason}); write it again") from error
    header = _checked_header(path, table.column_names)
    columns: dict[str, Sequence[str] | FloatArray] = {}
    for name, column in zip(header, table.columns, strict=True):
        cells = column.to_pylist()
        if all(cell is None or isinstance(cell, str) for cell in cells):
            columns[name] = [(cell or "").strip() for cell in cells]
        elif all(cell is None or isinstance(cell, (bool, int, float)) for cell in cells):
            columns[name] = np.array(cells, dtype=np.float64)
        else:
            problems.add(
                f"column '{name}': type {column.type} is not supported; write numbers or text"
            )
    return [f"row {row}" for row in range(1, table.num_rows + 1)], columns


SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")


@dataclass(frozen=True)
class ConceptTable:
    """The content of a table of concepts.

    Arguments:
        files: the image of each row.
        rows: description of each row, "line 2" of a CSV or "row 1" of a Parquet file.
        spec: name, kind and values of each concept.
        factors: (n, k) one column for each entry of `spec`.
        split: "train", "validation" or "test" for each row, if the table has the column.
    """

    files: tuple[str, ...]
    rows: tuple[str, ...]
    spec: tuple[Factor, ...]
    factors: FloatArray
    split: tuple[str, ...] | None = None


def read_table(
    path: str | os.PathLike[str],
    *,
    allow_missing: bool = False,
    kinds: Mapping[str, Kind] | None = None,
    problems: Problems | None = None,
) -> ConceptTable:
    """Read a CSV (comma, semicolon or tab) or Parquet table with a `file` column.

    A column of numbers is continuous, ordinal (up to 20 distinct integers) or binary (two
    values); a column of text is categorical, stored as the index into its sorted values. An optional
    column `split` assigns the rows to train, validation and test. The names `file` and `split` are
    not case-sensitive.

    Arguments:
        path: the table.
        allow_missing: accept empty cells, NA, N/A, null, nan, - and ? as missing labels (NaN).
        kinds: the kinds of columns for which the inferred kind is wrong, such as integer-coded
            categories.
        problems: collects the problems; when omitted, one error reports all of them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "concepts.csv")
    ...     _ = path.write_text("file,age,hue\\na.png,4.5,red\\nb.png,7,blue\\nc.png,9.5,red")
    ...     table = read_table(path)
    >>> [(factor.name, factor.kind) for factor in table.spec]
    [('age', 'continuous'), ('hue', 'binary')]
    >>> table.factors[:, 1]
    array([1., 0., 1.])
    """
    path = Path(path)
    found = Problems(path.name) if problems is None else problems
    if not path.is_file():
        raise DataError(f"{path}: there is no such table; check its name")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: a table is one of {', '.join(SUFFIXES)}; save it as CSV")
    try:
        rows, columns = (read_parquet if suffix == ".parquet" else read_csv)(path, found)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error}); check the file and its permissions"
        ) from error
    table = _interpret(path, rows, columns, found, kinds or {}, allow_missing)
    if problems is None:
        found.raise_any()
    return table


def _interpret(
    path: Path,
    rows: Sequence[str],
    columns: Columns,
    problems: Problems,
    kinds: Mapping[str, Kind],
    allow_missing: bool,
) -> ConceptTable:
    files = columns.get("file")
    if files is None:
        raise DataError(
            f"{path}: no column 'file' with the paths of the images. {did_you_mean('file', columns)} "
            f"Rename the column in the table's header"
        )
    if not rows:
        problems.raise_any()
        raise DataError(f"{path}: a header but no rows; add a row for each image")
    where: Where = rows.__getitem__
    files = tuple(map(str, files))
    _check_files(files, where, problems)
    concepts = {name: cells for name, cells in columns.items() if name not in RESERVED_COLUMNS}
    check_kinds(kinds, list(concepts))
    spec, factors = [], []
    for name, cells in concepts.items():
        about: Any = {"kind": kinds.get(name), "allow_missing": allow_missing}
        factor, values = (
            number_column(name, cells, where=where, problems=problems, **about)
            if isinstance(cells, np.ndarray)
            else text_column(name, cells, where=where, problems=problems, **about)
        )
        spec.append(factor)
        factors.append(values)
    table = np.stack(factors, axis=1) if factors else np.empty((len(rows), 0))
    split = tuple(map(str, columns["split"])) if "split" in columns else None
    for row, part in enumerate(split or ()):
        if part not in get_args(SplitName):
            problems.add(f"{where(row)}, column 'split': '{part}' is not train, validation or test")
    return ConceptTable(files, tuple(rows), tuple(spec), table, split)


def _check_files(files: Sequence[str], where: Where, problems: Problems) -> None:
    first: dict[PurePosixPath, int] = {}
    for row, file in enumerate(files):
        if not file:
            problems.add(
                f"{where(row)}, column 'file': empty; give the path of the image or remove the row"
            )
        elif (earlier := first.setdefault(PurePosixPath(file), row)) != row:
            problems.add(
                f"{where(row)}, column 'file': '{file}' is already in {where(earlier)}; keep one"
            )
