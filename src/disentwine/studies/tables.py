"""Tables of a study, from the rows of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from disentwine.studies.summary import Row


@dataclass(frozen=True)
class Column:
    """A metric as a column of a table.

    Arguments:
        heading: its title.
        metric: its name in the results.
        n: the number of images it was measured on; by default the largest.
        form: format of the numbers; "%" forms multiply by 100.
    """

    heading: str
    metric: str
    n: int | None = None
    form: str = ".3g"


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Arguments:
        title: its heading.
        headings: of its columns.
        lines: a cell for each heading.
        counted: number of seeds and of images, stated above the table.
    """

    title: str
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    counted: str = ""


def study_tables(rows: Sequence[Row], columns: Mapping[str, Sequence[Column]]) -> list[Table]:
    """One table for each title and data set, with published numbers in brackets behind ours.

    If lines have different numbers of seeds, a column states them. A cell of fewer seeds than others
    of its line says so.
    """
    tables = []
    for title, all_columns in columns.items():
        for data in dict.fromkeys(row["data"] for row in rows):
            here = [row for row in rows if row["data"] == data]
            shown = [c for c in all_columns if any(_matches(row, c) for row in here)]
            systems = dict.fromkeys((row["system"], row["note"]) for row in here)
            lines, seeds = [], []
            for system, note in systems:
                own = [row for row in here if (row["system"], row["note"]) == (system, note)]
                most = max(row["seeds"] for row in own)
                cells = [_cell(own, column, seeds=most) for column in shown]
                if any(cells):
                    lines.append((f"{system} ({note})" if note else system, *cells))
                    seeds.append(most)
            if lines:
                headings = ("system", *(column.heading for column in shown))
                if len({number for number in seeds if number}) > 1:
                    headings = ("system", "seeds", *headings[1:])
                    pairs = zip(lines, seeds, strict=True)
                    lines = [(line[0], str(number or ""), *line[1:]) for line, number in pairs]
                counted = _counted(here, shown)
                tables.append(Table(f"{title}: {data}", headings, tuple(lines), counted))
    return tables


def to_markdown(table: Table) -> str:
    """The table in Markdown.

    >>> print(to_markdown(Table("A", ("system", "mic"), (("vae", "0.3"),))))
    | system | mic |
    |---|---|
    | vae | 0.3 |
    """
    lines = [table.headings, ["---"] * len(table.headings), *table.lines]
    return "\n".join(
        "|" + "|".join(c if c == "---" else f" {c} " for c in line) + "|" for line in lines
    )


def _counted(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Seeds and images of a table, such as "3 seeds, n = 1,826"."""
    found = [row for row in rows if row["seeds"] and any(_matches(row, c) for c in columns)]
    if not found:
        return ""
    seeds = {row["seeds"] for row in found}
    sizes: dict[tuple[str, str, str], int] = {}
    for row in found:
        key = row["system"], row["note"], row["metric"]
        if any(_matches(row, column) and column.n is None for column in columns):
            sizes[key] = max(row["n"], sizes.get(key, 0))
    most, n = max(seeds), set(sizes.values())
    parts = [f"{most} seed{'s' * (most > 1)}" if len(seeds) == 1 else ""]
    parts.append(f"n = {n.pop():,}" if len(n) == 1 else "")
    text = ", ".join(filter(None, parts))
    return f"{text}." if text else ""


def _matches(row: Row, column: Column) -> bool:
    return row["metric"] == column.metric and column.n in (None, row["n"])


def _cell(rows: Sequence[Row], column: Column, *, seeds: int) -> str:
    found = [row for row in rows if _matches(row, column)]
    if not found:
        return ""
    row = max(found, key=lambda row: row["n"])
    form = f"z{column.form}"  # no sign if the value rounds to 0
    parts = [] if row["value"] is None else [format(row["value"], form)]
    if row["spread"] is not None:
        parts.append(f"± {format(row['spread'], form)}")
    if 0 < row["seeds"] < seeds:
        parts.append(f"({row['seeds']} of {seeds} seeds)")
    if row["paper"] is not None:
        parts.append(f"[{format(row['paper'], form)}]")
    return " ".join(parts)
