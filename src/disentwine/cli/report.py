"""disentwine report: one page that shows a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    from disentwine.training.run import load_run

    print(f"report: {write_report(load_run(run), effects=effects)}")
