"""disentwine demo: the main job on the embedded default, then its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Train the demo model on pictures drawn in the package; resumes, and reuses a finished run."""
    from disentwine.cli.tables import print_scores
    from disentwine.report import evaluate_run, write_report
    from disentwine.training.recipe import read_recipe
    from disentwine.training.run import RECIPE, Run
    from disentwine.training.train import train_recipe

    recipe = read_recipe("demo")
    if (out / RECIPE).is_file() and Run(out).finished:
        print(f"{out} is finished already; showing it again")
        run = Run(out)
    else:
        run = train_recipe(recipe, out)
    print_scores(evaluate_run(run))
    print(f"report: {write_report(run)}")
