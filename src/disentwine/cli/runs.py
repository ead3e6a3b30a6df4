"""disentwine report and disentwine runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder of runs.")] = Path("runs"),
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
            help="Also measure the effects of interventions with a concept probe, which takes "
            "about half a minute to train.",
        ),
    ] = False,
) -> None:
    """Regenerate report.html of a run; also while it is training."""
    from disentwine.report import write_report
    from disentwine.runs.run import load_run

    print(f"report: {write_report(load_run(run), effects=effects)}")
