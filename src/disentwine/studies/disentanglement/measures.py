"""Scores of the disentanglement studies, and the choice of a best setting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from disentwine.core.dataset import Dataset, evenly_spaced
from disentwine.core.model import Model
from disentwine.core.score import Score
from disentwine.evaluation.baselines import baseline_latents
from disentwine.evaluation.evaluate import Options, run_evaluators
from disentwine.evaluation.held_out import HeldOut
from disentwine.evaluation.protocols import (
    FEW_POINTS,
    LIMIT,
    POINTS,
    protocol_scores,
    validation_scores,
)
from disentwine.runs.run import Run
from disentwine.studies.disentanglement.trials import LONG
from disentwine.studies.learning_curves import costs, read_learning_curve, scores_after
from disentwine.studies.trial import Baseline, TrialResult

MINUTES = (10, 30, 90)
"""Minutes of training after which scores are reported."""

WATCHED_IMAGES = 2_000
"""Most images to measure on at a checkpoint."""

WATCHED = ("z-diff", "z-diff-no-shape", "sap", "sap-all-units", "reconstruction-error")


def measure(
    measured: Run | Baseline, *, limit: int = LIMIT, points: tuple[int, int] = POINTS
) -> list[Score]:
    """Scores of the test split; of a training also those of the validation split, and its costs."""
    dataset = measured.dataset
    test = evenly_spaced(dataset.split["test"], limit)
    if isinstance(measured, Baseline):
        latents = baseline_latents(measured.name, dataset, test, seed=measured.recipe.seed)
        return protocol_scores(latents, dataset.factors[test], dataset.spec, points=points)
    model, learning_curve = measured.model, read_learning_curve(measured.path)
    held = HeldOut(model, dataset, "test", test, given=model.represent(dataset.images[test]))
    options: Options = {
        "protocols": {"points": points},
        "reconstruction": {"at_once": True},
        "attributes": {"limit": limit},
        "validation": {"points": points, "limit": limit},
    }
    names = ("protocols", "reconstruction", "active-latents", "attributes", "validation")
    return [
        *run_evaluators(held, names, options=options).scores,
        *costs(learning_curve),
        *scores_after(learning_curve, MINUTES, WATCHED),
    ]


def watch(
    model: Model, dataset: Dataset, *, limit: int = WATCHED_IMAGES, points: Any = FEW_POINTS
) -> dict[str, float]:
    """Scores on some of the validation images, for the learning curve."""
    some = HeldOut(model, dataset, "validation", dataset.split["validation"])
    found = validation_scores(some, points=points, limit=limit)
    named = {score.name.removeprefix("validation:"): score.value for score in found}
    return {name: value for name, value in named.items() if name in WATCHED}


def best_setting(
    results: Sequence[TrialResult], system: str, *, by: str, error_at_most: float | None = None
) -> list[TrialResult]:
    """The results of a system's best setting on each data set, as rows of their own.

    The setting is chosen by its mean on the validation split over seeds, among those with the most
    seeds, since the best of many single trainings is the best by luck. Longer trainings, which have
    an advantage, do not count. Where there is only one such setting, nothing is chosen.

    Arguments:
        results: of all settings, which differ in their notes.
        system: the system.
        by: the metric to choose by, the larger the better.
        error_at_most: settings with a larger reconstruction error do not count.
    """
    chosen: list[TrialResult] = []
    for data in dict.fromkeys(result.trial.data for result in results):
        settings: dict[str, list[TrialResult]] = {}
        for result in results:
            same = (result.trial.system, result.trial.data) == (system, data)
            if same and not result.trial.note.endswith(LONG):
                settings.setdefault(result.trial.note, []).append(result)
        most = max((len(found) for found in settings.values()), default=0)
        candidates = {note: found for note, found in settings.items() if len(found) == most}
        able = {
            note: found
            for note, found in candidates.items()
            if error_at_most is None
            or mean_of(found, "validation:reconstruction-error") <= error_at_most
        }
        if able and len(candidates) > 1:
            note = max(able, key=lambda note: mean_of(able[note], f"validation:{by}"))
            named = f"{system}, best {by}"
            if error_at_most is not None:
                named += f" at error <= {error_at_most:g}"
            chosen += [
                replace(o, trial=replace(o.trial, system=named), scores=_without_costs(o.scores))
                for o in able[note]
            ]
    return chosen


def _without_costs(scores: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The scores of a second row of the same trainings: their costs stand in the first."""
    return tuple(s for s in scores if not re.search("seconds-|megabytes|-minutes$", s["name"]))


def mean_of(results: Sequence[TrialResult], name: str) -> float:
    """The mean of a score over the results that have it; NaN where none has."""
    values = [s["value"] for o in results for s in o.scores if s["name"] == name]
    return float(np.mean(values)) if values else float("nan")
