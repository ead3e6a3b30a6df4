"""The tables of a study, for the terminal and for Markdown, from the rows of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A metric as a column of a table.

    Arguments:
        heading: what it is called.
        metric: its name in the results.
        n: the number of images it was measured on; by default the largest.
        form: how a number is written; "%" forms multiply by 100.
    """

    heading: str
    metric: str
    n: int | None = None
    form: str = ".3g"


@dataclass(frozen=True)
class Table:
    """Arguments:
    title: what it shows.
    headings: of its columns.
    lines: a cell for each heading.
    """

    title: str
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def study_tables(rows: Sequence[Row], columns: Mapping[str, Sequence[Column]]) -> list[Table]:
    """One table for each title and data set; published numbers stand in brackets behind ours.

    Where lines are of different numbers of seeds, each tells its own; and a cell that is of fewer than
    others of its line.
    """
    tables = []
    for title, wanted in columns.items():
        for data in dict.fromkeys(row["data"] for row in rows):
            here = [row for row in rows if row["data"] == data]
            kept = [c for c in wanted if any(_matches(row, c) for row in here)]
            systems = dict.fromkeys((row["system"], row["note"]) for row in here)
            lines, seeds = [], []
            for system, note in systems:
                own = [row for row in here if (row["system"], row["note"]) == (system, note)]
                most = max(row["seeds"] for row in own)
                cells = [_cell(own, column, seeds=most) for column in kept]
                if any(cells):
                    lines.append((f"{system} ({note})" if note else system, *cells))
                    seeds.append(most)
            if lines:
                headings = ("system", *(column.heading for column in kept))
                if len({number for number in seeds if number}) > 1:
                    headings = ("system", "seeds", *headings[1:])
                    pairs = zip(lines, seeds, strict=True)
                    lines = [(line[0], str(number or ""), *line[1:]) for line, number in pairs]
                tables.append(Table(f"{title}: {data}", headings, tuple(lines)))
    return tables


def to_markdown(table: Table) -> str:
    """The table as Markdown has it.

    >>> print(to_markdown(Table("A", ("system", "mic"), (("vae", "0.3"),))))
    | system | mic |
    |---|---|
    | vae | 0.3 |
    """
    lines = [table.headings, ["---"] * len(table.headings), *table.lines]
    return "\n".join(
        "|" + "|".join(c if c == "---" else f" {c} " for c in line) + "|" for line in lines
    )


def _matches(row: Row, column: Column) -> bool:
    return row["metric"] == column.metric and column.n in (None, row["n"])


def _cell(rows: Sequence[Row], column: Column, *, seeds: int) -> str:
    found = [row for row in rows if _matches(row, column)]
    if not found:
        return ""
    row = max(found, key=lambda row: row["n"])
    form = f"z{column.form}"  # without the sign of what is rounded to 0
    parts = [] if row["value"] is None else [format(row["value"], form)]
    if row["spread"] is not None:
        parts.append(f"± {format(row['spread'], form)}")
    if 0 < row["seeds"] < seeds:
        parts.append(f"({row['seeds']} of {seeds} seeds)")
    if row["paper"] is not None:
        parts.append(f"[{format(row['paper'], form)}]")
    return " ".join(parts)
