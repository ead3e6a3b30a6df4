"""The files that tables are kept in, CSV and Parquet: their columns as they are."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from disentwine.contracts.dataset import FloatArray
from disentwine.data.columns import Problems
from disentwine.errors import DataError

NO_CONCEPTS = ("file", "split")
"""Columns that are not concepts, whatever the case of their names."""

Columns = Mapping[str, Sequence[str] | FloatArray]


def read_csv(path: Path, problems: Problems) -> tuple[list[str], Columns]:
    """What the rows are called, and the columns by name, all of text."""
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
        raise DataError(f"{path}: not text in UTF-8; save it as 'CSV UTF-8'") from error
    except csv.Error as error:
        raise DataError(f"{path}: line {line + 1}: {error}; mend its quotes") from error
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
        name = name.lower() if name.lower() in NO_CONCEPTS else name
        if not name:
            raise DataError(f"{path}: line 1: column {number} has no name; name or remove it")
        if name in header:
            raise DataError(f"{path}: line 1: two columns are named '{name}'; rename one")
        header.append(name)
    return header


def read_parquet(path: Path, problems: Problems) -> tuple[list[str], Columns]:
    """What the rows are called, and the columns by name, of numbers or of text."""
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
            problems.add(f"column '{name}': of type {column.type}; write numbers or text")
    return [f"row {row}" for row in range(1, table.num_rows + 1)], columns
