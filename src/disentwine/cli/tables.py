"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from disentwine.contracts.score import Score
    from disentwine.training.run import Run


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title; columns named with a leading ">" are aligned to the right."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column[0] == ">" else "left")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table, width=None if console.is_terminal else 120)


def print_scores(scores: Sequence[Score], *, title: str) -> None:
    def optional(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    rows = [
        (
            score.name,
            f"{score.value:.5g}",
            optional(score.details.get("spread"), ".2g"),
            f"{score.n:,}",
            optional(score.noise_floor, ".3g"),
            optional(score.details.get("seconds"), ".1f"),
        )
        for score in scores
    ]
    print_table(title, ("score", ">value", ">seed spread", ">n", ">floor", ">seconds"), rows)


def print_skipped(skipped: Mapping[str, str]) -> None:
    for name, reason in skipped.items():
        print(f"{name} does not apply: {reason}")


def print_runs(runs: Sequence[Run], folder: Path) -> None:
    rows = []
    for run in runs:
        status, recipe = run.status, run.recipe
        best = status.get("best")
        rows.append(
            (
                str(run.path),
                recipe.model["name"],
                recipe.data["name"],
                status["state"],
                f"{status.get('step', 0):,} of {recipe.training['steps']:,}",
                f"{best['score']:.6g}" if best else "",
                f"{status.get('seconds', 0) / 60:.1f}",
            )
        )
    columns = ("run", "model", "data", "state", ">steps", ">best validation loss", ">minutes")
    if rows:
        print_table(f"runs in {folder}", columns, rows)
    else:
        print(f"no runs in {folder}; 'disentwine demo' makes one")


def print_recipes() -> None:
    from disentwine.training.recipe import ready_recipes

    rows = []
    for name, text in ready_recipes().items():
        content = yaml.safe_load(text)
        about = text.splitlines()[0].lstrip("# ")
        rows.append((name, content["model"]["name"], content["data"]["name"], about))
    print_table("ready recipes: disentwine train NAME", ("recipe", "model", "data", "about"), rows)
