"""Running a study: its trainings, its results, its pictures and its page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disentwine.studies.study import Profile, Study, write_results
from disentwine.studies.tables import Table, study_tables, to_markdown
from disentwine.studies.trials import run_trials
from disentwine.training.storage import make_folder, write_atomically

FOLDERS: dict[Profile, Path] = {"paper": Path("results"), "smoke": Path("runs/smoke")}
"""Where results go when no folder is named; a smoke test leaves the published ones alone."""


@dataclass(frozen=True)
class Finished:
    """Arguments:
    results: the file of all rows.
    page: tables and pictures as Markdown.
    tables: the same tables.
    minutes: of this session.
    """

    results: Path
    page: Path
    tables: list[Table]
    minutes: float


def run_study(
    study: Study,
    *,
    profile: Profile = "paper",
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int = 2,
    out: Path | None = None,
    progress: bool | None = None,
) -> Finished:
    """Train and measure all that a study compares, then write its results.

    What was trained in an earlier session is used again, what was interrupted goes on.

    Arguments:
        study: one of `STUDIES`.
        profile: "paper" for the published setting, "smoke" for a quick look that all works.
        seeds: of the trainings.
        jobs: trainings at a time, one thread each.
        out: folder of `<study>.json`, `<study>.md` and `<study>/*.png`; run folders are kept in
            `runs` beside it when it is given.
        progress: show the bar; by default on a terminal only.
    """
    start = time.perf_counter()
    folder = make_folder(out or FOLDERS[profile])
    kept = folder / "runs" if out or profile == "smoke" else Path("runs")
    runs = make_folder(kept / study.name)
    outcomes = run_trials(
        study.trials(profile, seeds),
        runs,
        measure=study.measure[profile],
        jobs=jobs,
        label=study.name,
        progress=progress,
    )
    pictures = study.figures(outcomes, runs, make_folder(folder / study.name))
    minutes = (time.perf_counter() - start) / 60
    command = (
        f"disentwine study {study.name} --profile {profile} --seeds {' '.join(map(str, seeds))}"
    )
    path = folder / f"{study.name}.json"
    results = write_results(study, outcomes, path, command=command)
    tables = study_tables(results["rows"], study.tables)
    page = folder / f"{study.name}.md"
    cores = results["machine"]["core_minutes"]
    parts = [
        f"# {study.about}",
        f"Made by `{command}` in {cores:.0f} minutes of one core. Published numbers stand in square "
        "brackets, ± is the spread over seeds. What was trained how is in the JSON file beside.",
    ]
    for table in tables:
        parts += [f"## {table.title}", to_markdown(table)]
    parts += [
        f"## {caption}\n\n![{caption}]({file.relative_to(folder)})" for caption, file in pictures
    ]
    write_atomically(page, ("\n\n".join(parts) + "\n").encode())
    return Finished(path, page, tables, minutes)
