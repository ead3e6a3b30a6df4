"""What train and demo end with: the numbers on the terminal, and the report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disentwine.training.recipe import Recipe
    from disentwine.training.run import Run


def train_and_show(recipe: Recipe, out: Path) -> None:
    """Train a recipe, or go on where it stopped; then show the run."""
    from disentwine.report import live_figures
    from disentwine.report.subject import duration
    from disentwine.training.checkpoint import checkpoint_steps
    from disentwine.training.opening import check_run
    from disentwine.training.train import train_recipe

    check_run(out, recipe)  # refuses what cannot be gone on with before anything is announced
    steps, model, data = recipe.training["steps"], recipe.model["name"], recipe.data["name"]
    done = max(checkpoint_steps(out / "checkpoints"), default=0)
    going = f"going on at step {done:,} of {steps:,}" if 0 < done < steps else f"{steps:,} steps"
    print(f"training {model} on {data}, {going}, in {out}", file=sys.stderr)
    run = train_recipe(recipe, out, hook=live_figures)
    print(f"trained in {duration(run.status['seconds'])}", file=sys.stderr)
    show_run(run)


def scores_title(run: Run, split: str) -> str:
    """What was scored: which run, on which images, with the weights of which step."""
    step, steps = run.checkpoint.step, run.recipe.training["steps"]
    return f"{run.path} on the {split} split, with the weights of step {step:,} of {steps:,}"


def show_run(run: Run) -> None:
    """Print a run's scores and write its report."""
    from disentwine.cli.tables import print_scores
    from disentwine.report import evaluate_run, write_report

    found = evaluate_run(run)
    print_scores(found.scores, title=scores_title(run, found.split))
    print(f"report: {write_report(run, found=found)}")
    print(f"to try it out: disentwine serve {shlex.quote(str(run.path))}")
