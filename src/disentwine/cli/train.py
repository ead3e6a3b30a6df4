"""The commands `train` and `demo`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from disentwine.runs.recipe import Recipe
    from disentwine.runs.run import Run


def train_and_show(recipe: Recipe, out: Path) -> None:
    """Train a recipe, or resume its training; then show the run."""
    from disentwine.report import FiguresWhileTraining
    from disentwine.report.text import duration
    from disentwine.runs.checkpoint import checkpoint_steps
    from disentwine.runs.fit import train_recipe
    from disentwine.runs.run import check_run

    check_run(out, recipe)  # refuses what cannot be resumed, before anything is printed
    steps, model, data = recipe.training["steps"], recipe.model["name"], recipe.data["name"]
    done = max(checkpoint_steps(out / "checkpoints"), default=0)
    going = f"resuming at step {done:,} of {steps:,}" if 0 < done < steps else f"{steps:,} steps"
    print(f"training {model} on {data}, {going}, in {out}", file=sys.stderr)
    run = train_recipe(recipe, out, callbacks=[FiguresWhileTraining(out)])
    print(f"trained in {duration(run.status['seconds'])}", file=sys.stderr)
    show_run(run)


def show_run(run: Run) -> None:
    """Print a run's scores and write its report."""
    from disentwine.cli._tables import print_scores, scores_title
    from disentwine.evaluation import evaluate_run
    from disentwine.report import write_report

    found = evaluate_run(run)
    print_scores(found.scores, title=scores_title(run, found.split))
    print(f"report: {write_report(run, found=found)}")
    print(f"to explore it: disentwine serve {shlex.quote(str(run.path))}")


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
    from disentwine.cli._tables import print_recipes
    from disentwine.cli.train import train_and_show
    from disentwine.errors import UsageError

    if list_recipes:
        print_recipes()
        return
    if not recipe:
        raise UsageError("name a recipe; 'disentwine train --list' shows the ready ones")
    from disentwine.runs.recipe import read_recipe

    train_and_show(read_recipe(recipe, overrides or []), out or Path("runs") / Path(recipe).stem)


def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Train the demo model on simulated images; resumes, and reuses a finished run."""
    from disentwine.cli.train import show_run, train_and_show
    from disentwine.runs.recipe import read_recipe
    from disentwine.runs.run import Run, is_run

    recipe = read_recipe("demo")
    if is_run(out) and Run(out).finished and Run(out).recipe == recipe:
        print(f"{out} is already finished; showing it again")
        show_run(Run(out))
    else:
        train_and_show(recipe, out)
