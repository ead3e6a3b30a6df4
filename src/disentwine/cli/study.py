"""disentwine study: reproduce the table of a paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Profile(StrEnum):
    paper = "paper"
    smoke = "smoke"


def study(
    name: Annotated[str, typer.Argument(help="Name of the study; omit to list them.")] = "",
    # Options take one value: the rest of `--seeds 0 1 2` arrives here.
    more_seeds: Annotated[
        list[int] | None,
        typer.Argument(metavar="seeds", help="Further seeds, as in --seeds 0 1 2."),
    ] = None,
    profile: Annotated[
        Profile,
        typer.Option(help="'smoke' trains for a few updates to test that everything runs."),
    ] = Profile.paper,
    seeds: Annotated[list[int] | None, typer.Option(help="Random seeds: --seeds 0 1 2.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings in parallel, one thread each.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder; results/ by default, runs/smoke/ for smoke."),
    ] = None,
    stages: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of stages to train, most informative first. "
            "Defaults to the study's own number.",
        ),
    ] = None,
    no_train: Annotated[
        bool,
        typer.Option("--no-train", help="Write the results of finished trainings; train nothing."),
    ] = False,
) -> None:
    """Reproduce the table of a paper; an interrupted study continues when run again.

    Results are written after every stage and on interruption.
    Finished trials are not trained again: to repeat one, delete its record
    in <study>/trials and its run folder.
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
        train=not no_train,
    )
    for table in written.tables:
        headings = (table.headings[0], *(f">{heading}" for heading in table.headings[1:]))
        print_table(table.title, headings, table.lines)
    print("published numbers are in square brackets, ± is the standard deviation over seeds")
    if profile == Profile.smoke:
        print("smoke profile: these numbers do not describe the systems")
    print(f"results: {written.results}\npage: {written.page}\n{written.minutes:.1f} minutes")
