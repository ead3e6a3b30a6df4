"""Training from a recipe."""

from __future__ import annotations

from pathlib import Path

from disentwine.contracts.model import data_arguments
from disentwine.training.fit import fit
from disentwine.training.recipe import Recipe
from disentwine.training.run import Run, open_run
from disentwine.training.trainer import fixed_noise


def train_recipe(recipe: Recipe, out: Path, *, progress: bool | None = None) -> Run:
    """Build what a recipe names, train it in the folder `out`, and return the run."""
    run = open_run(out, recipe)
    dataset = run.dataset
    with fixed_noise(recipe.seed):
        model = recipe.build_model(data_arguments(dataset))
    fit(model, dataset, **recipe.training, seed=recipe.seed, out=out, progress=progress)
    return run
