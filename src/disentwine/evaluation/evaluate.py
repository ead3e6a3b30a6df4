"""`EVALUATORS`: everything that is measured of a model on held-out images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from disentwine.core.capabilities import (
    AppliesActions,
    EstimatesLikelihood,
    Hierarchical,
    Intervenes,
    Quantizes,
)
from disentwine.core.dataset import Dataset, Simulates
from disentwine.core.model import Model
from disentwine.core.score import Score
from disentwine.core.types import ACTIVE_VARIANCE, IndexArray
from disentwine.errors import DisentwineError, UsageError, did_you_mean
from disentwine.evaluation.actions import score_actions
from disentwine.evaluation.counterfactuals import score_counterfactuals, sharpness_scores
from disentwine.evaluation.disentanglement import MetricNames, score_latents
from disentwine.evaluation.effects import effect_scores
from disentwine.evaluation.held_out import (
    LIMIT,
    HeldOut,
    active_latents,
    held_out,
    losses,
    reconstruction,
)
from disentwine.evaluation.independence import HasExogenousLatents, exogenous_scores
from disentwine.evaluation.likelihood import LIKELIHOOD, likelihood_errors, likelihood_score
from disentwine.evaluation.probes import ConceptProbe
from disentwine.evaluation.protocols import (
    SMALL_SAMPLE,
    attribute_scores,
    counterfactual_errors,
    elbo,
    latents_per_layer,
    mean_counterfactuals,
    off_target_changes,
    published_protocols,
    quantized_information,
    small_samples,
    unseen_pairs,
    validation_scores,
)
from disentwine.metrics.graphs import shd
from disentwine.runs.run import Run

REPORTED = ("z-diff", "sap", "mig", "mic-tic")
"""The metrics that a report shows: the best known, and quick."""

EvaluatorNames = Literal["default", "all"] | Sequence[str]

Options = Mapping[str, Mapping[str, Any]]
"""Keyword arguments of evaluators, by name."""


@dataclass(frozen=True)
class Evaluator:
    """One kind of measurement.

    Arguments:
        name: what `--evaluators` calls it.
        about: what it measures.
        function: from held-out images, and options, to scores; none where it does not apply.
        needs: a capability that the model must have.
        opt_in: whether it is measured only when asked for.
    """

    name: str
    about: str
    function: Callable[..., list[Score]]
    needs: type | None = None
    opt_in: bool = False


@dataclass(frozen=True)
class Evaluation:
    """What was measured on held-out images.

    Arguments:
        split: the split's name.
        indices: the images.
        scores: the numbers.
        latents: (n, d), or none where the model's latents are no table of numbers.
        latent_kl: (d,) mean KL divergence of each latent from a standard normal, or in a hierarchy
            from its prior given the layer above, for models that infer a Gaussian.
        skipped: metrics that do not apply, and factors that are left out, each with the reason.
    """

    split: str
    indices: IndexArray
    scores: list[Score]
    latents: NDArray[np.floating] | None
    latent_kl: NDArray[np.float64] | None
    skipped: Mapping[str, str] = field(default_factory=dict)

    def score(self, name: str) -> Score | None:
        return next((score for score in self.scores if score.name == name), None)


def graph(held: HeldOut) -> list[Score]:
    """The structural Hamming distance of the model's graph to the true one."""
    learnt, true = held.model.graph, held.dataset.graph
    return [] if true is None else [shd(learnt, true)]


def counterfactuals(held: HeldOut) -> list[Score]:
    """The error of counterfactual images against the simulator, for every concept."""
    if not isinstance(held.dataset, Simulates):
        return []
    return score_counterfactuals(held.model, held.dataset, held.indices, seed=held.seed)


def independence(held: HeldOut) -> list[Score]:
    """Independence of exogenous latents from labels, and injectivity of the decoder."""
    return exogenous_scores(held.model, held.dataset, held.indices, seed=held.seed)


def actions(held: HeldOut) -> list[Score]:
    """Accuracy of retrieved actions, and errors of images after an action."""
    return score_actions(held.model, held.dataset)


def disentanglement(
    held: HeldOut, *, metrics: MetricNames = "all", seeds: Iterable[int] = (0,)
) -> list[Score]:
    """Metrics of latents and factors."""
    found = score_latents(
        held.latents,
        held.factors,
        held.dataset.spec,
        discrete_codes=isinstance(held.model, Quantizes),
        inactive=ACTIVE_VARIANCE,
        metrics=metrics,
        seeds=seeds,
        on_metric=held.on_metric,
    )
    held.skipped.update(found.skipped)
    return found.scores


def effects(held: HeldOut, *, make_probe: Callable[[], ConceptProbe] | None = None) -> list[Score]:
    """Concepts that interventions move, predicted from counterfactual images by a probe."""
    probe = held.probe if make_probe is None else make_probe()
    return effect_scores(held.model, probe, held.dataset, held.indices, seed=held.seed)


def sharpness(held: HeldOut) -> list[Score]:
    """Gradient energy of reconstructions and counterfactual images over that of real ones."""
    return sharpness_scores(held.model, held.dataset, held.indices, seed=held.seed)


WITHOUT: dict[type, str] = {
    Intervenes: "the model cannot intervene",
    AppliesActions: "the model applies no actions",
    Hierarchical: "the model has no layers of latents",
    EstimatesLikelihood: "the model does not estimate the likelihood of an image",
    HasExogenousLatents: "the model has no exogenous latents",
    Quantizes: "the model has no quantized codes",
}
"""Why evaluators do not apply to models without a capability."""

NO_LABELS, NO_SIMULATOR = "no image has all labels", "the data set has no simulator"
NO_PAIRS = "the data set has no test pairs of the model's actions"
AFTER = "it needs scores of another evaluator: name '{}' before it"

EMPTY = {
    "active-latents": "the latents are no table of numbers",
    "graph": "the data set has no true graph",
    "counterfactuals": NO_SIMULATOR,
    "actions": NO_PAIRS,
    "likelihood-errors": AFTER.format(LIKELIHOOD),
    "elbo": "the loss has no terms of the bound",
    "counterfactual-errors": AFTER.format("counterfactuals"),
    "mean-counterfactuals": AFTER.format("counterfactuals"),
    "sharpness": NO_SIMULATOR,
    "small-samples": f"at most {SMALL_SAMPLE} images have all labels, or the latents are codes",
    "protocols": "too few images have all labels, or the latents are codes",
    "attributes": "not all factors are binary, or labels are missing",
    "validation": "the validation split is empty",
    "off-target-change": f"{NO_PAIRS}, or the probe cannot predict its factors",
    "unseen-pairs": NO_PAIRS,
}
"""Why an evaluator has no scores although the model has the capability; else `NO_LABELS`."""

EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("losses", "mean of every loss term", losses),
    Evaluator("reconstruction", "mean squared error of a pixel", reconstruction),
    Evaluator("active-latents", "number of active latents", active_latents),
    Evaluator("graph", "distance to the true graph", graph, Intervenes),
    Evaluator("counterfactuals", "error against the simulator", counterfactuals, Intervenes),
    Evaluator("independence", "exogenous latents and labels", independence, HasExogenousLatents),
    Evaluator("actions", "retrieved actions, images after actions", actions, AppliesActions),
    Evaluator("disentanglement", "metrics of latents and factors", disentanglement),
    Evaluator(
        "effects",
        "concepts that interventions move, predicted by a probe",
        effects,
        Intervenes,
        opt_in=True,
    ),
    Evaluator(
        LIKELIHOOD,
        "importance-weighted lower bound",
        likelihood_score,
        EstimatesLikelihood,
        opt_in=True,
    ),
    Evaluator(
        "likelihood-errors",
        "standard errors of the bound",
        likelihood_errors,
        EstimatesLikelihood,
        opt_in=True,
    ),
    Evaluator("elbo", "evidence lower bound of a hierarchy", elbo, Hierarchical, opt_in=True),
    Evaluator("layers", "active latents per layer", latents_per_layer, Hierarchical, opt_in=True),
    Evaluator(
        "counterfactual-errors",
        "mean squared error per concept",
        counterfactual_errors,
        Intervenes,
        opt_in=True,
    ),
    Evaluator(
        "mean-counterfactuals",
        "ratio and share over all concepts",
        mean_counterfactuals,
        Intervenes,
        opt_in=True,
    ),
    Evaluator(
        "sharpness", "gradient energy over that of real images", sharpness, Intervenes, opt_in=True
    ),
    Evaluator("small-samples", "MIC and TIC on 100 images", small_samples, opt_in=True),
    Evaluator(
        "protocols", "published variants of Z-diff and SAP", published_protocols, opt_in=True
    ),
    Evaluator("attributes", "accuracy of attribute vectors", attribute_scores, opt_in=True),
    Evaluator("validation", "protocols on the validation split", validation_scores, opt_in=True),
    Evaluator(
        "off-target-change",
        "factors that actions move, predicted by a probe",
        off_target_changes,
        AppliesActions,
        opt_in=True,
    ),
    Evaluator(
        "unseen-pairs", "actions of unseen images", unseen_pairs, AppliesActions, opt_in=True
    ),
    Evaluator(
        "quantized-information", "InfoMEC of codes", quantized_information, Quantizes, opt_in=True
    ),
)
"""In the order in which scores are printed. Commands, reports and studies choose from it."""


def chosen_evaluators(names: EvaluatorNames) -> list[Evaluator]:
    """The evaluators that were asked for, in the order of their names.

    >>> [evaluator.name for evaluator in chosen_evaluators(["graph", "losses"])]
    ['graph', 'losses']
    """
    if names in ("all", "default"):
        return [each for each in EVALUATORS if names == "all" or not each.opt_in]
    known = {evaluator.name: evaluator for evaluator in EVALUATORS}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no evaluator '{name}'. {did_you_mean(name, known)}")
    return [known[name] for name in dict.fromkeys(names)]


@torch.no_grad()
def run_evaluators(
    held: HeldOut, names: EvaluatorNames = "default", *, options: Options | None = None
) -> Evaluation:
    """Run evaluators one after the other; those that do not apply are skipped.

    The reason is kept, but not for those of the default that do not apply to a model.

    Arguments:
        held: a model and the images to measure it on.
        names: which evaluators, "default" for those that are not opt-in, or "all". An evaluator
            that fails raises its error, but among "all" it is skipped with that reason.
        options: keyword arguments of evaluators, by name.
    """
    held.model.eval()
    chosen = chosen_evaluators(names)
    whole_default = names != "all" and all(each.opt_in or each in chosen for each in EVALUATORS)
    for evaluator in chosen:
        silent = whole_default and not evaluator.opt_in
        if evaluator.needs is not None and not isinstance(held.model, evaluator.needs):
            if not silent:
                held.skipped[evaluator.name] = WITHOUT[evaluator.needs]
            continue
        if evaluator.opt_in and held.on_metric is not None:
            held.on_metric(evaluator.name)
        try:
            scores = evaluator.function(held, **(options or {}).get(evaluator.name, {}))
            held.add(scores)
            # Metrics of latents and factors have a reason each.
            if not scores and not silent and evaluator.function is not disentanglement:
                held.skipped[evaluator.name] = EMPTY.get(evaluator.name, NO_LABELS)
        except DisentwineError as error:
            if names != "all":
                raise
            held.skipped[evaluator.name] = str(error)
    return Evaluation(
        held.split, held.indices, held.scores, held.latents, held.latent_kl, held.skipped
    )


def evaluate(
    model: Model,
    dataset: Dataset,
    metrics: MetricNames = "all",
    *,
    evaluators: EvaluatorNames = "default",
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
    step: int = 0,
    seed: int = 0,
    limit: int = LIMIT,
    options: Options | None = None,
) -> Evaluation:
    """Pass held-out images through a model once and measure what applies to it.

    Arguments:
        model: in evaluation mode afterwards.
        dataset: its test split is used; the validation split where that is empty.
        metrics: of latents and factors: names from `disentwine.metrics.METRICS`, "all" or "none".
        evaluators: names from `EVALUATORS`, "default" for those that are not opt-in, or "all".
        seeds: metrics that sample are averaged over these, and their spread is reported.
        on_metric: called with the name of each metric before it is measured.
        step: what schedules of the loss see; give the last step of training.
        seed: of the noise in the loss.
        limit: most images to look at.
        options: keyword arguments of evaluators, by name.

    >>> from disentwine import VAE, data
    >>> pendulum = data.Pendulum(size=32)
    >>> found = evaluate(VAE.for_data(pendulum, latent=3), pendulum, ["mig"], limit=32)
    >>> [score.name for score in found.scores]
    ['loss', 'reconstruction', 'kl', 'reconstruction-error', 'active-units', 'mig']
    """
    model.check_fits(dataset)
    split, indices = held_out(dataset, limit)
    held = HeldOut(model, dataset, split, indices, step=step, seed=seed, on_metric=on_metric)
    metric_options = {"metrics": metrics, "seeds": seeds}
    return run_evaluators(
        held, evaluators, options={"disentanglement": metric_options, **(options or {})}
    )


def evaluate_run(
    run: Run,
    *,
    dataset: Dataset | None = None,
    metrics: MetricNames = REPORTED,
    evaluators: EvaluatorNames = "default",
    seeds: Iterable[int] = (0,),
    effects: bool = False,
    on_metric: Callable[[str], None] | None = None,
    options: Options | None = None,
) -> Evaluation:
    """Evaluate a run on its test split.

    Arguments:
        run: its model is evaluated with the run's best or last weights, as the run chose.
        dataset: where images come from; by default the one that the run was trained on.
        metrics, evaluators, seeds, on_metric, options: as in `evaluate`; by default the metrics
            that a report shows.
        effects: add the evaluator "effects". It trains a concept probe: half a minute on one core
            for images of 64 x 64.
    """
    if effects and evaluators != "all":
        chosen = [evaluator.name for evaluator in chosen_evaluators(evaluators)]
        evaluators = [*chosen, "effects"]
    return evaluate(
        run.model,
        dataset if dataset is not None else run.dataset,
        metrics,
        evaluators=evaluators,
        seeds=seeds,
        on_metric=on_metric,
        step=run.recipe.training["steps"],
        seed=run.recipe.seed,
        options=options,
    )
