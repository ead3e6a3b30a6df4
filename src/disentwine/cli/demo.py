"""disentwine demo: the main job on the embedded default, then its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Train the demo model on pictures drawn in the package; resumes, and reuses a finished run."""
    from disentwine.cli.show import show_run, train_and_show
    from disentwine.training.recipe import read_recipe
    from disentwine.training.run import Run, is_run

    recipe = read_recipe("demo")
    if is_run(out) and Run(out).finished and Run(out).recipe == recipe:
        print(f"{out} is finished already; showing it again")
        show_run(Run(out))
    else:
        train_and_show(recipe, out)
