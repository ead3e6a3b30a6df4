"""Scores of a hierarchy: its log-likelihood, and the KL divergence of layers and latents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.core.score import Score
from disentwine.evaluation.evaluate import evaluate
from disentwine.evaluation.likelihood import log_likelihood
from disentwine.evaluation.protocols import mean_latent_kl
from disentwine.runs.run import Run
from disentwine.studies.learning_curves import costs, read_learning_curve

SAMPLES, FEW_SAMPLES = 5_000, 100
CORRECTED_ON = {"mnist": 1_000, "omniglot": 500}
"""Test images that get all 5,000 samples; see `corrected_log_likelihood`. 1,000 of them take two
minutes and a half."""

UNITS_ON, WATCHED_IMAGES, WATCHED_SAMPLES = 5_000, 500, 50


EVALUATED = ("log-likelihood", "likelihood-errors", "elbo", "losses", "layers")


def measure(
    run: Run, *, limit: int | None = None, samples: int = SAMPLES, few: int = FEW_SAMPLES
) -> list[Score]:
    """The log-likelihood of the test split, the KL divergence of each layer, and training costs."""
    dataset, seed = run.dataset, run.recipe.seed
    test = evenly_spaced(dataset.split["test"], limit or len(dataset))
    corrected = evenly_spaced(test, CORRECTED_ON.get(run.recipe.data["name"], len(test)))
    bound = {"images": test, "corrected": corrected, "samples": samples, "few": few}
    found = evaluate(
        run.model,
        dataset,
        evaluators=EVALUATED,
        step=run.recipe.training["steps"],
        seed=seed,
        limit=limit or UNITS_ON,
        options={"log-likelihood": bound, "losses": {"prefix": "kl_"}},
    )
    terms = [replace(s, details={}) if s.name.startswith("kl_") else s for s in found.scores]
    return [*terms, *costs(read_learning_curve(run.path))]


def watch(
    model: Model, dataset: Dataset, *, images: int = WATCHED_IMAGES, samples: int = WATCHED_SAMPLES
) -> dict[str, Any]:
    """The bound of some training and validation images, and the KL divergence of each latent."""
    parts = {part: evenly_spaced(dataset.split[part], images) for part in ("train", "validation")}
    bounds = {
        part: log_likelihood(model, dataset, indices, samples=samples, progress=False).value
        for part, indices in parts.items()
    }
    kl = mean_latent_kl(model, dataset, parts["validation"])
    return {**bounds, "unit-kl": kl.tolist()}
