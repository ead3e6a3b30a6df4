"""Tables on the terminal."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table

from disentwine.errors import DisentwineError
from disentwine.evaluation.likelihood import LIKELIHOOD

if TYPE_CHECKING:
    from disentwine.core.score import Score
    from disentwine.runs.run import Run


PIPED_WIDTH = 1000
"""Width of tables that are not printed on a terminal: they are never wrapped."""

FEW = 100
"""Images below which scores of latents and factors are mostly chance."""


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = ""
) -> None:
    """Print rows under a title; columns named with a leading ">" are aligned to the right.

    Columns that are empty in every row are left out; cells too wide for the terminal are wrapped.
    """
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    table = Table()
    for i in kept:
        name = columns[i].removeprefix(">")
        right = columns[i].startswith(">")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(row[i] for i in kept))
    width = None if Console().is_terminal else PIPED_WIDTH
    # Names are the user's: a column may be called "height [cm]".
    wide = Console(width=width, markup=False, emoji=False)
    for part in (title, table, caption):
        if part:
            wide.print(part)


def in_cell(value: float | None, form: str) -> str:
    """A number in a table: nothing where it was not measured, a dash for NaN and infinity.

    >>> in_cell(0.25, ".1%"), in_cell(None, ".1%"), in_cell(float("nan"), ".1%")
    ('25.0%', '', '-')
    """
    if value is None:
        return ""
    return format(value, form) if math.isfinite(value) else "-"


def scores_title(run: Run, split: str) -> str:
    """The run, the split, and the step of the weights."""
    step, steps = run.checkpoint.step, run.recipe.training["steps"]
    return f"{run.path} on the {split} split, with the weights of step {step:,} of {steps:,}"


def print_scores(scores: Sequence[Score], *, title: str) -> None:
    rows = [
        (
            score.name,
            in_cell(score.value, ".5g"),
            in_cell(score.details.get("spread"), ".2g"),
            in_cell(score.noise_floor, ".3g"),
            f"{score.n:,}",
            in_cell(score.details.get("seconds"), ".1f"),
        )
        for score in scores
    ]
    compared = [score for score in scores if score.noise_floor is not None]
    notes = []
    if compared:
        notes.append("chance level: the score with shuffled latents (permutation baseline)")
    seeds = max((score.details.get("seeds") or 1 for score in scores), default=1)
    if seeds > 1:
        notes.append(f"scores with a seed spread are means over {seeds} seeds")
    effects = [score for score in scores if score.name.startswith("effect-")]
    if effects:
        notes.append(
            "effects: errors in standard deviations of the label, of concepts that a probe infers from "
            "the images; a probe is unreliable for combinations that no training image shows"
        )
    if any(score.noise_floor is not None for score in effects):
        notes.append("chance level of effects: the probe's error on the simulator's images")
    for score in scores:
        if score.name == LIKELIHOOD:
            error, samples = score.details["standard_error"], score.details["samples"]
            notes.append(
                f"{score.name}: a lower bound in nats, from {samples:,} samples per image; its standard "
                f"error over images is {in_cell(error, '.2g')}"
            )
    if min((score.n for score in compared), default=FEW) < FEW:  # others may need few images
        notes.append(f"fewer than {FEW} images: scores of latents and factors are mostly chance")
    columns = ("score", ">value", ">seed spread", ">chance level", ">n", ">seconds")
    print_table(title, columns, rows, caption="\n".join(notes))


def print_comparison(found: Mapping[str, Sequence[Score]], *, title: str) -> None:
    """Print one row a score, one column a representation."""
    names = list(dict.fromkeys(score.name for scores in found.values() for score in scores))
    values = {
        label: {s.name: in_cell(s.value, ".4g") for s in scores} for label, scores in found.items()
    }
    rows = [(name, *(values[label].get(name, "") for label in found)) for name in names]
    print_table(title, ("score", *(f">{label}" for label in found)), rows)


def print_skipped(skipped: Mapping[str, str]) -> None:
    for reason in dict.fromkeys(skipped.values()):
        names = [name for name, why in skipped.items() if why == reason]
        print(f"{', '.join(names)} {'do' if len(names) > 1 else 'does'} not apply: {reason}")


def print_runs(runs: Sequence[Run], folder: Path) -> None:
    if not runs:
        print(f"no runs in {folder}; 'disentwine demo' makes one")
    else:
        here = [run for run in runs if folder in (run.path, run.path.parent)]
        if here:
            columns = ("run", "model", "data", "state", ">steps", ">best loss", ">minutes")
            print_table(f"runs in {folder}", columns, [_run_row(run) for run in here])
        # A study makes dozens: they would hide the others.
        deeper = Counter(run.path.parent for run in runs if run not in here)
        for parent, number in deeper.items():
            print(f"{number} more: disentwine runs {shlex.quote(str(parent))}")


def _run_row(run: Run) -> tuple[str, ...]:
    try:
        status, recipe = run.status, run.recipe
    except DisentwineError as error:
        return (str(run.path), "", "", f"unreadable: {error}", "", "", "")
    best = status.get("best")
    return (
        str(run.path),
        recipe.model["name"],
        recipe.data["name"],
        status["state"],
        f"{status.get('step', 0):,} of {recipe.training['steps']:,}",
        f"{best['score']:.6g}" if best else "",
        f"{status.get('seconds', 0) / 60:.1f}",
    )


def print_recipes() -> None:
    from disentwine.runs.recipe import ready_recipes

    rows = []
    for name, text in ready_recipes().items():
        content = yaml.safe_load(text)
        about = text.splitlines()[0].lstrip("# ")
        rows.append((name, content["model"]["name"], content["data"]["name"], about))
    print_table("ready recipes: disentwine train NAME", ("recipe", "model", "data", "about"), rows)
