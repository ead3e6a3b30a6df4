"""The results page of a study as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from disentwine.runs.storage import write_atomically
from disentwine.studies.study import Study
from disentwine.studies.summary import data_line
from disentwine.studies.tables import Table, study_tables, to_markdown

SMOKE_NOTE = (
    "**Smoke test.** Every training has a few updates only: the numbers and figures say nothing about "
    "the systems."
)
HOW_TO_READ = (
    "Published numbers are in square brackets, ± is the standard deviation over seeds. The JSON file of "
    "the same name has the recipe of every row."
)


def write_results_page(
    study: Study,
    content: Mapping[str, Any],
    figure_files: Sequence[tuple[str, Path]],
    page: Path,
    *,
    missing: str = "",
    smoke: bool = False,
) -> list[Table]:
    """Write the page: summary, notes, tables, figures; returns the tables.

    Arguments:
        study: of the results.
        content: of the file of results, as `write_results` returns it.
        figure_files: caption and file of each figure.
        page: the file to write.
        missing: the trainings that are not finished.
        smoke: the results are those of a smoke test: no summary, no notes.
    """
    rows = content["rows"]
    tables = study_tables(rows, study.tables)
    shown = {row["data"] for row in rows if row["seeds"]}
    parts = [f"# {study.about}", SMOKE_NOTE if smoke else "\n".join(summary_lines(study, content))]
    parts += [missing] if missing else []
    parts.append(HOW_TO_READ)
    if not smoke:
        parts += content.get("notes", study.notes)
        parts += [text for data, text in study.dataset_notes.items() if data in shown]
    for table in tables:
        parts += [f"## {table.title}", table.counted, to_markdown(table)]
    parts += [
        f"## {caption}\n\n![{caption}]({file.relative_to(page.parent)})"
        for caption, file in figure_files
    ]
    write_atomically(page, ("\n\n".join(filter(None, parts)) + "\n").encode())
    return tables


def summary_lines(study: Study, content: Mapping[str, Any]) -> list[str]:
    """The five lines on top of a page; two of them only for studies with a summary."""
    summary = study.summary(content["rows"]) if study.summary is not None else None
    trials, minutes = content["trials"], max(1, round(content["machine"]["core_minutes"]))
    lines = [
        f"**Compared**: {summary.compared if summary else study.about + '.'}",
        f"**Data**: {data_line(content['rows'])}",
        f"**Results**: {summary.results}" if summary else "",
        f"**Falls short**: {summary.shortfalls}" if summary else "",
        f"**Reproduce**: `{content['command']}`; {trials['finished']} trainings took "
        f"{minutes:,} minute{'s' * (minutes > 1)} of one core in total.",
    ]
    return [f"- {line}" for line in lines if line]


def figures_on(page: Path) -> list[tuple[str, Path]]:
    """Caption and file of the figures that a page shows, as far as the files exist."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    found = [
        (caption, page.parent / file) for caption, file in re.findall(r"!\[(.+)\]\((.+)\)", text)
    ]
    return [(caption, file) for caption, file in found if file.is_file()]
