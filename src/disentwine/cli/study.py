"""disentwine study: a paper's table, re-run beside the published numbers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Profile(StrEnum):
    paper = "paper"
    smoke = "smoke"


def study(
    name: Annotated[str, typer.Argument(help="Which one; leave away to list them.")] = "",
    # Options take one value: of `--seeds 0 1 2` the rest arrives here.
    more_seeds: Annotated[
        list[int] | None,
        typer.Argument(metavar="seeds", help="Those after the first of --seeds 0 1 2."),
    ] = None,
    profile: Annotated[
        Profile,
        typer.Option(help="'smoke' is a quick look that all works; its numbers mean nothing."),
    ] = Profile.paper,
    seeds: Annotated[
        list[int] | None, typer.Option(help="Seeds of the trainings: --seeds 0 1 2.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, one thread each.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; by default results/, for smoke runs/smoke/."),
    ] = None,
    stages: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many stages to make, the most telling come first; the study's guide in docs/ "
            "says what each holds. By default as many as the study has, or says.",
        ),
    ] = None,
    finished: Annotated[
        bool,
        typer.Option("--finished", help="Train nothing: write results of what is finished."),
    ] = False,
) -> None:
    """Re-run the table of a paper; run again, it goes on where it stopped.

    Results are written after every stage, and when it is interrupted. What has a record among them
    is not trained again: delete its <study>/trials/*.json, and its run folder, to train it anew.
    """
    from disentwine.cli._tables import print_table
    from disentwine.errors import UsageError, did_you_mean
    from disentwine.studies import STUDIES
    from disentwine.studies.runner import run_study

    if not name:
        rows = [(study.name, study.about) for study in STUDIES.values()]
        print_table("studies: disentwine study NAME", ("study", "about"), rows)
        return
    if name not in STUDIES:
        raise UsageError(f"there is no study '{name}'. {did_you_mean(name, STUDIES)}")
    chosen = [*(seeds or []), *(more_seeds or [])]
    chosen = chosen or ([0] if profile == Profile.smoke else [0, 1, 2])
    written = run_study(
        STUDIES[name],
        profile=profile.value,
        seeds=chosen,
        jobs=jobs,
        out=out,
        stages=stages,
        train=not finished,
    )
    for table in written.tables:
        headings = (table.headings[0], *(f">{heading}" for heading in table.headings[1:]))
        print_table(table.title, headings, table.lines)
    print("published numbers stand in square brackets; ± is the spread over seeds")
    if profile == Profile.smoke:
        print("a quick look that all works: these numbers say nothing of the systems")
    print(f"results: {written.results}\npage: {written.page}\n{written.minutes:.1f} minutes")
