"""Report; runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def runs(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"),
) -> None:
    """List the runs in a folder: model, data, state, best validation loss."""
    from disentwine.cli._tables import print_runs
    from disentwine.errors import UsageError
    from disentwine.runs.run import find_runs

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; 'disentwine demo' makes a run in runs/demo")
    print_runs(find_runs(folder), folder)


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Also show which concepts interventions move, read back from do-images by a "
            "network that is trained for it: about half a minute more.",
        ),
    ] = False,
) -> None:
    """Write a run's report anew: also for one that is still training."""
    from disentwine.report import write_report
    from disentwine.runs.run import load_run

    print(f"report: {write_report(load_run(run), effects=effects)}")
