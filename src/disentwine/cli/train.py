"""disentwine train: from a recipe to a run folder and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe file, or the name of a ready recipe.")
    ] = "",
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes, such as model.beta=4 seed=1.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; by default runs/<recipe>.")
    ] = None,
    list_recipes: Annotated[bool, typer.Option("--list", help="List the ready recipes.")] = False,
) -> None:
    """Train a model; run again to resume. A finished run is never overwritten."""
    from disentwine.cli.show import train_and_show
    from disentwine.cli.tables import print_recipes
    from disentwine.errors import UsageError

    if list_recipes:
        print_recipes()
        return
    if not recipe:
        raise UsageError("name a recipe; 'disentwine train --list' shows the ready ones")
    from disentwine.training.recipe import read_recipe

    train_and_show(read_recipe(recipe, overrides or []), out or Path("runs") / Path(recipe).stem)
