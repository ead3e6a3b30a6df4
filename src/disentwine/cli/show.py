"""What train and demo end with: the numbers on the terminal, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disentwine.training.recipe import Recipe
    from disentwine.training.run import Run


def train_and_show(recipe: Recipe, out: Path) -> None:
    """Train a recipe, or go on where it stopped; then show the run."""
    from disentwine.report import live_figures
    from disentwine.training.train import train_recipe

    show_run(train_recipe(recipe, out, hook=live_figures))


def show_run(run: Run) -> None:
    """Print a run's scores and write its report."""
    from disentwine.cli.tables import print_scores
    from disentwine.report import evaluate_run, write_report

    found = evaluate_run(run)
    print_scores(found.scores, title=f"{run.path} on the {found.split} split")
    print(f"report: {write_report(run, found=found)}")
