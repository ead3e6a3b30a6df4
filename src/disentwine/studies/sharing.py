"""Runs that several studies need are trained once, and copied."""

from __future__ import annotations

import shutil
from pathlib import Path

from disentwine.errors import DisentwineError
from disentwine.report.kept import SCORES
from disentwine.training.recipe import Recipe
from disentwine.training.run import is_run, load_run
from disentwine.training.storage import storage_errors


def copied_from_elsewhere(recipe: Recipe, folder: Path) -> Path | None:
    """A copy, in `folder`, of the run that another study made by the same recipe, if one has.

    It is made under a hidden name, which is no run for anybody, and renamed when it is whole.
    """
    half = folder.with_name(f".{folder.name}")
    shutil.rmtree(half, ignore_errors=True)  # what was cut off before
    digest = folder.name.rpartition("-")[2]
    for other in sorted(folder.parent.parent.glob(f"*/*-{digest}")):
        if not other.name.startswith(".") and _is_whole(other, recipe):
            with storage_errors(folder):
                try:
                    shutil.copytree(other, half, ignore=shutil.ignore_patterns(SCORES, ".*"))
                    return half.rename(folder)
                finally:
                    shutil.rmtree(half, ignore_errors=True)
    return None


def _is_whole(path: Path, recipe: Recipe) -> bool:
    """Whether a folder holds a finished run of the recipe, and its best weights to the bit."""
    if not is_run(path):
        return False
    run = load_run(path)
    try:
        if not run.finished or run.recipe != recipe:
            return False
        step, best = run.checkpoint.step, run.checkpoint.state.get("best") or {}
    except DisentwineError:
        return False
    # Where the best weights are damaged, the last ones are loaded in their place.
    return bool(best.get("step", step) == step)
