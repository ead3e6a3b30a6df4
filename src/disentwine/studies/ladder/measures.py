"""What is measured of a hierarchy: its likelihood, and what each of its layers and units carries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.samplers.shuffled import validation_batches
from disentwine.data.splits import evenly_spaced
from disentwine.evaluation.evaluate import evaluate
from disentwine.evaluation.likelihood import log_likelihood
from disentwine.figures.hierarchy import ACTIVE
from disentwine.models.hierarchical.base import HierarchicalModel
from disentwine.nn.images import evaluation_mode
from disentwine.runs.run import Run
from disentwine.studies.learning_curves import costs, read_learning_curve
from disentwine.training.trainer import BatchSource

SAMPLES, FEW_SAMPLES = 5_000, 100
CORRECTED_ON = {"mnist": 1_000, "omniglot": 500}
"""Test images that get all 5,000 samples; see `likelihood`. 1,000 of them take two minutes and a half."""

UNITS_ON, WATCHED_IMAGES, WATCHED_SAMPLES = 5_000, 500, 50


def measure(
    run: Run, *, limit: int | None = None, samples: int = SAMPLES, few: int = FEW_SAMPLES
) -> list[Score]:
    """The likelihood of the test split, what each layer carries, and what it cost."""
    dataset, model, seed = run.dataset, cast(HierarchicalModel, run.model), run.recipe.seed
    test = evenly_spaced(dataset.split["test"], limit or len(dataset))
    corrected = evenly_spaced(test, CORRECTED_ON.get(run.recipe.data["name"], len(test)))
    found = evaluate(
        model,
        dataset,
        "none",
        step=run.recipe.training["steps"],
        seed=seed,
        limit=limit or UNITS_ON,
    )
    # Not the loss, which may be that of several samples together.
    terms = [s for s in found.scores if s.name == "reconstruction" or s.name.startswith("kl_")]
    n = len(found.indices)
    bound = likelihood(model, dataset, test, corrected, samples=samples, few=few, seed=seed)
    errors = {name: bound.details[name] for name in ("standard_error", "error_of_correction")}
    return [
        bound,
        *(Score(name.replace("_", "-"), value, n=bound.n) for name, value in errors.items()),
        Score("elbo", -sum(term.value for term in terms), n=n),
        *(replace(s, details={}) for s in found.scores if s.name.startswith("kl_")),
        *activity(model, unit_kl(model, dataset, found.indices), n=n),
        *costs(read_learning_curve(run.path)),
    ]


def activity(model: HierarchicalModel, kl: FloatArray, *, n: int) -> list[Score]:
    """How many units carry more than 0.01 nats: in all, and of each layer."""
    of = np.array(model.latent_layers)
    return [
        Score("active-units", float((kl > ACTIVE).sum()), n=n, details={"kl": kl}),
        *(
            Score(f"active-units:{i}", float((kl[of == i] > ACTIVE).sum()), n=n)
            for i in range(1, of.max() + 1)
        ),
    ]


def unit_kl(model: HierarchicalModel, dataset: Dataset, indices: IndexArray) -> FloatArray:
    """The mean of `kl_per_latent` over images, (units,) nats, with noise that is always the same."""
    source = BatchSource.like(model, dataset)
    with evaluation_mode(model), fixed_noise(0):
        found = [model.kl_per_latent(source.take(batch).x) for batch in validation_batches(indices)]
    mean: FloatArray = torch.cat(found).double().mean(0).cpu().numpy()
    return mean


def likelihood(
    model: Model,
    dataset: Dataset,
    test: IndexArray,
    corrected: IndexArray,
    *,
    samples: int,
    few: int,
    seed: int,
) -> Score:
    r"""The importance-weighted bound with many samples, from few samples of all images and many of some:
    $\overline{L_{few}} + \overline{(L_{many} - L_{few})}$, the second mean over some of the images.

    The difference varies far less from image to image than the bound does, so that some are enough
    for it. Where all images are corrected, it is the bound with many samples itself.

    Arguments:
        model: one that scores.
        dataset: where images come from.
        test: the images.
        corrected: those of them that get many samples, sorted as `test` is.
        samples, few: draws an image.
        seed: of the draws.
    """
    bound = partial(log_likelihood, model, dataset, seed=seed, progress=False)
    many = bound(corrected, samples=samples)
    details: dict[str, float] = {"samples": samples, "corrected_on": len(corrected)}
    details |= {"standard_error": many.details["standard_error"], "error_of_correction": 0.0}
    if len(corrected) == len(test):
        return replace(many, details=details)
    loose = bound(test, samples=few)
    per_image = loose.details["per_image"]
    gap = many.details["per_image"] - per_image[np.searchsorted(test, corrected)]
    details["error_of_correction"] = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    details["standard_error"] = loose.details["standard_error"]
    return Score("log-likelihood", float(loose.value + gap.mean()), n=len(test), details=details)


def watch(
    model: Model, dataset: Dataset, *, images: int = WATCHED_IMAGES, samples: int = WATCHED_SAMPLES
) -> dict[str, Any]:
    """The bound of some training and validation images, and what each unit carries."""
    parts = {part: evenly_spaced(dataset.split[part], images) for part in ("train", "validation")}
    bounds = {
        part: log_likelihood(model, dataset, indices, samples=samples, progress=False).value
        for part, indices in parts.items()
    }
    kl = unit_kl(cast(HierarchicalModel, model), dataset, parts["validation"])
    return {**bounds, "unit-kl": kl.tolist()}
