"""disentwine runs: what was trained here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def runs(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"),
) -> None:
    """List the runs in a folder: model, data, state, best validation loss."""
    from disentwine.cli.tables import print_runs
    from disentwine.errors import UsageError
    from disentwine.training.run import find_runs

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; 'disentwine demo' makes a run in runs/demo")
    print_runs(find_runs(folder), folder)
