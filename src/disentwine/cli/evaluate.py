"""disentwine evaluate: the numbers of a run on its test split."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print every score that applies to a run, measured on its test split."""
    from disentwine.cli.tables import print_scores
    from disentwine.report import examine_run
    from disentwine.training.run import load_run

    found = examine_run(load_run(run))
    if as_json:
        print(json.dumps([asdict(score) for score in found.scores], indent=1))
    else:
        print_scores(found.scores, split=found.split)
