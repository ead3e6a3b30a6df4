"""disentwine report: one page that shows a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Write a run's report anew: also for one that is still training."""
    from disentwine.report import write_report
    from disentwine.training.run import load_run

    print(f"report: {write_report(load_run(run))}")
