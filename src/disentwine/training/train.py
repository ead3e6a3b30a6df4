"""Training from a recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from disentwine.contracts.dataset import Dataset
from disentwine.training.fit import OnSave, fit
from disentwine.training.opening import check_run
from disentwine.training.recipe import Recipe
from disentwine.training.run import Run
from disentwine.training.trainer import fixed_noise


def train_recipe(
    recipe: Recipe,
    out: Path,
    *,
    progress: bool | None = None,
    hook: Callable[[Path, Dataset], OnSave] | None = None,
) -> Run:
    """Build what a recipe names, train it in the folder `out`, and return the run.

    Arguments:
        recipe: what to train on what.
        out: the run folder; an unfinished run of the same recipe is resumed.
        progress: show the bar; by default on a terminal only.
        hook: makes what is called after every checkpoint, such as `report.live_figures`.
    """
    check_run(out, recipe)
    dataset = recipe.build_dataset()
    with fixed_noise(recipe.seed):
        model = recipe.build_model(dataset)
    on_save = hook(out, dataset) if hook is not None else None
    options = {**recipe.training, "seed": recipe.seed, "progress": progress, "on_save": on_save}
    fit(model, dataset, **options, out=out)
    run = Run(out)
    run.dataset = dataset
    return run
