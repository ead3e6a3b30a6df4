"""Summary of a study, computed from its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

NOT_MEASURED = "not measured"
COUNTED = ("reconstruction-error", "log-likelihood", "mic")
"""Metrics whose number of images is that of the test split, the first that a study has."""


@dataclass(frozen=True)
class Summary:
    """The lines of a summary that are particular to a study.

    Arguments:
        compared: what was compared, and by which measure.
        results: the main numbers, with the published ones.
        shortfalls: where the results fall short of the published ones, or of the aim.
    """

    compared: str
    results: str
    shortfalls: str


def quote(
    rows: Sequence[Row],
    system: str,
    metric: str,
    form: str,
    *,
    data: str,
    note: str | None = None,
    n: int | None = None,
) -> str:
    """A row's number with its spread, and with the published number if there is one.

    Arguments:
        rows: of the results.
        system, metric, data, note, n: of the row; any note and the largest n if they are not given.
        form: format of the numbers.

    >>> row = {"system": "vae", "data": "flow", "metric": "mic", "note": "", "n": 9, "value": 0.5}
    >>> quote([row | {"spread": 0.25, "paper": 0.125}], "vae", "mic", ".0%", data="flow")
    '50% ± 25% (published 12%)'
    >>> quote([], "vae", "mic", ".0%", data="flow")
    'not measured'
    """
    found = [
        row
        for row in rows
        if (row["system"], row["metric"], row["data"]) == (system, metric, data)
        and note in (None, row["note"])
        and n in (None, row["n"])
        and row["value"] is not None
    ]
    if not found:
        return NOT_MEASURED
    row = max(found, key=lambda row: row["n"])
    text = format(row["value"], form)
    if row["spread"] is not None:
        text += f" ± {format(row['spread'], form)}"
    if row["paper"] is not None:
        text += f" (published {format(row['paper'], form)})"
    return text


def row_name(row: Row) -> str:
    """System and note of a row.

    >>> row_name({"system": "vae", "note": "long"})
    'vae (long)'
    """
    return f"{row['system']} ({row['note']})" if row["note"] else str(row["system"])


def best_row(rows: Sequence[Row], metric: str, *, data: str, without: Collection[str] = ()) -> Row:
    """The row with the largest value of a metric on a data set; empty if there is none.

    Arguments:
        rows: of the results.
        metric, data: of the row.
        without: systems that do not count.
    """
    found = [
        row
        for row in rows
        if (row["metric"], row["data"]) == (metric, data)
        and row["system"] not in without
        and row["value"] is not None
    ]
    return max(found, key=lambda row: row["value"], default={})


def below_published(rows: Sequence[Row], metric: str, form: str, *, data: str) -> str:
    """The rows whose value is below the published one, with both numbers; "none" without any."""
    found: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row["n"]):  # of several numbers of images the largest
        if (row["metric"], row["data"]) == (metric, data) and row["value"] is not None:
            found[row_name(row)] = row
    texts = [
        f"{name} {format(row['value'], form)} (published {format(row['paper'], form)})"
        for name, row in found.items()
        if row["paper"] is not None and row["value"] < row["paper"]
    ]
    return ", ".join(texts) or "none"


def data_line(rows: Sequence[Row]) -> str:
    """Data sets with the number of test images, and the seeds.

    >>> row = {"data": "flow", "metric": "mic", "n": 1620, "seeds": 2, "of_seeds": [0, 1]}
    >>> data_line([row])
    'flow (1,620 test images); seeds 0, 1.'
    """
    measured = [row for row in rows if row["seeds"]]
    names = dict.fromkeys(row["data"] for row in measured)
    counts: dict[str, int] = {}
    for row in measured:
        if row["metric"] in COUNTED:
            counts[row["data"]] = max(row["n"], counts.get(row["data"], 0))
    data = ", ".join(
        f"{name} ({counts[name]:,} test images)" if name in counts else name for name in names
    )
    seeds = sorted({seed for row in measured for seed in row.get("of_seeds", range(row["seeds"]))})
    fewer = any(row["seeds"] < len(seeds) for row in measured)
    return (
        f"{data}; seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
        f"{', fewer where a table says so' * fewer}."
    )
