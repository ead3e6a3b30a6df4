"""The numbers of a trained model on images that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from disentwine.core.capabilities import Hierarchical, Intervenes, MatchesActions, Quantizes
from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import IndexArray
from disentwine.data.samplers.shuffled import shuffled, validation_batches
from disentwine.data.splits import random_subset
from disentwine.errors import DataError
from disentwine.evaluation.actions import score_actions
from disentwine.evaluation.baselines import baseline_codes
from disentwine.evaluation.counterfactuals import score_counterfactuals
from disentwine.evaluation.disentanglement import MetricNames, chosen_metrics, score_codes
from disentwine.evaluation.effects import effect_scores
from disentwine.evaluation.independence import exogenous_scores
from disentwine.evaluation.latents import diverging_units, unit_divergences
from disentwine.evaluation.probes import train_concept_probe
from disentwine.metrics.active_latents import ALIVE, active_units
from disentwine.metrics.graphs import shd
from disentwine.metrics.images import reconstruction_error
from disentwine.runs.run import Run
from disentwine.training.trainer import BatchSource

REPORTED = ("z-diff", "sap", "mig", "mic-tic")
"""The metrics that a report shows: the best known, and quick."""

LIMIT = 5_000
"""Images that are enough for a mean; of a larger split they are chosen at random, always the same."""


@dataclass(frozen=True)
class Evaluation:
    """What one pass over held-out images found.

    Arguments:
        split: the split's name.
        indices: which images were seen.
        scores: the numbers.
        codes: (n, d), or none where the model's codes are no table of numbers.
        unit_kl: (d,) mean KL divergence of each unit from a standard normal, or of a hierarchy from
            what the layer above expects, for models that infer a Gaussian.
        skipped: the metrics that do not apply, and factors that they are not of, each with the reason.
    """

    split: str
    indices: IndexArray
    scores: list[Score]
    codes: NDArray[np.floating] | None
    unit_kl: NDArray[np.float64] | None
    skipped: Mapping[str, str] = field(default_factory=dict)

    def score(self, name: str) -> Score | None:
        return next((score for score in self.scores if score.name == name), None)


def evaluate_run(
    run: Run,
    *,
    dataset: Dataset | None = None,
    metrics: MetricNames = REPORTED,
    seeds: Iterable[int] = (0,),
    effects: bool = False,
    on_metric: Callable[[str], None] | None = None,
) -> Evaluation:
    """What applies to a run, on its test split.

    Arguments:
        run: its model is evaluated as the run chose it: the best or the last weights.
        dataset: where images come from; by default the one the run was trained on, built anew.
        metrics, seeds, on_metric: as in `evaluate`; by default the metrics that a report shows.
        effects: also read concepts back from do-images (see `report.effects`), for which a network
            is trained first: half a minute on one core for images of 64 x 64.
    """
    chosen = dataset if dataset is not None else run.dataset
    found = evaluate(
        run.model,
        chosen,
        metrics=metrics,
        seeds=seeds,
        on_metric=on_metric,
        step=run.recipe.training["steps"],
        seed=run.recipe.seed,
    )
    if not effects:
        return found
    if not isinstance(run.model, Intervenes):
        reason = "the model cannot intervene"
        return replace(found, skipped={**found.skipped, "effects": reason})
    if on_metric is not None:
        on_metric("effects")
    reader = train_concept_probe(chosen, progress=None if on_metric is None else False)
    scores = effect_scores(run.model, reader, chosen, found.indices, seed=run.recipe.seed)
    return replace(found, scores=[*found.scores, *scores])


@torch.no_grad()
def evaluate(
    model: Model,
    dataset: Dataset,
    metrics: MetricNames = "all",
    *,
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
    step: int = 0,
    seed: int = 0,
    limit: int = LIMIT,
) -> Evaluation:
    """Pass held-out images through a model once and measure what applies to it.

    The mean of every loss term, the reconstruction error, the number of active units, and every
    metric of codes and factors.

    Arguments:
        model: in evaluation mode afterwards.
        dataset: its test split is used; the validation split where that is empty.
        metrics: names from `disentwine.metrics.METRICS`, "all" or "none".
        seeds: metrics that sample are averaged over these, and their spread is told.
        on_metric: called with the name of each metric before it is measured.
        step: what schedules of the loss see; give the last step of training.
        seed: of the noise in the loss.
        limit: most images to look at.

    >>> from disentwine import VAE, data
    >>> pictures = data.Pendulum(size=32)
    >>> found = evaluate(VAE.for_data(pictures, latent=3), pictures, ["mig"], limit=32)
    >>> [score.name for score in found.scores]
    ['loss', 'reconstruction', 'kl', 'reconstruction-error', 'active-units', 'mig']
    """
    model.check_fits(dataset)
    split, indices = held_out(dataset, limit)
    model.eval()
    source = BatchSource.like(model, dataset)
    means = _WeightedMeans()
    codes = []
    order = shuffled(np.arange(len(indices)))
    with fixed_noise(seed):
        for chunk in validation_batches(indices[order]):
            batch = source.take(chunk, step=step)
            pictures = dataset.images[chunk]
            with torch.random.fork_rng():  # so that the loss is along the same draws
                kl = unit_divergences(model, batch.x)
            for name, value in model.loss(batch).means().items():
                means.add(name, value.double().cpu().numpy(), len(chunk))
            rebuilt = reconstruction_error(pictures, model.reconstruct(pictures))
            means.add(rebuilt.name, rebuilt.value, len(chunk))
            codes.append(np.asarray(model.represent(pictures)))
            if kl is not None and kl.shape == codes[-1].shape:
                means.add("unit kl", kl.double().mean(0).cpu().numpy(), len(chunk))

    found = means.take()
    unit_kl = found.pop("unit kl", None)
    about = {
        "loss": "the weighted sum that training minimises"
        + (" while it learns images" if isinstance(model, MatchesActions) else ""),
        rebuilt.name: rebuilt.details["about"],
    }
    scores = [
        Score(
            name,
            float(value),
            n=len(indices),
            details={"about": about.get(name, "a term of the loss"), "split": split},
        )
        for name, value in found.items()
    ]
    table = np.concatenate(codes)[np.argsort(order)]
    numbers = table if table.ndim == 2 and np.issubdtype(table.dtype, np.floating) else None
    if numbers is None:
        skipped = dict.fromkeys(chosen_metrics(metrics), "the codes are no table of numbers")
        return Evaluation(split, indices, scores, numbers, unit_kl, skipped)
    discrete = isinstance(model, Quantizes)
    scores.append(
        diverging_units(unit_kl, n=len(indices))
        if isinstance(model, Hierarchical) and unit_kl is not None
        else active_units(numbers, discrete_codes=discrete)
    )
    if isinstance(model, Intervenes) and dataset.graph is not None:
        scores.append(shd(model.graph, dataset.graph))
    scores += score_counterfactuals(model, dataset, indices, seed=seed)
    scores += exogenous_scores(model, dataset, indices, seed=seed)
    scores += score_actions(model, dataset)
    factors = dataset.factors[indices]
    scored = score_codes(
        numbers,
        factors,
        dataset.spec,
        discrete_codes=discrete,
        inactive=ALIVE,
        metrics=metrics,
        seeds=seeds,
        on_metric=on_metric,
    )
    return Evaluation(split, indices, scores + scored.scores, numbers, unit_kl, scored.skipped)


def evaluate_baseline(
    name: str,
    dataset: Dataset,
    metrics: MetricNames = "all",
    *,
    components: int = 10,
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
    limit: int = LIMIT,
) -> Evaluation:
    """The same for a representation that needs no network: see `models.baselines`.

    >>> from disentwine import data
    >>> found = evaluate_baseline("ground-truth", data.Shapes2D(), ["modularity"], limit=2000)
    >>> round(found.scores[0].value, 2)
    1.0
    """
    split, indices = held_out(dataset, limit)
    codes = baseline_codes(name, dataset, indices, components=components)
    factors = dataset.factors[indices]
    scored = score_codes(
        codes, factors, dataset.spec, metrics=metrics, seeds=seeds, on_metric=on_metric
    )
    return Evaluation(split, indices, scored.scores, codes, None, scored.skipped)


def held_out(dataset: Dataset, limit: int) -> tuple[str, IndexArray]:
    """Name and indices of the images to evaluate on, at most `limit` of the split."""
    for name in ("test", "validation"):
        indices = random_subset(dataset.split[name], limit)
        if len(indices) > 0:
            return name, indices
    raise DataError("the test and validation splits are empty: give the data set more images")


class _WeightedMeans:
    """Means over chunks of different sizes."""

    def __init__(self) -> None:
        self.sums: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def add(self, name: str, mean: Any, n: int) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + mean * n
        self.counts[name] = self.counts.get(name, 0) + n

    def take(self) -> dict[str, Any]:
        return {name: total / self.counts[name] for name, total in self.sums.items()}
