"""What is measured of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.splits import evenly_spaced
from disentwine.evaluation.baselines import baseline_codes
from disentwine.metrics.active_latents import ALIVE, active_units
from disentwine.metrics.attributes import attribute_accuracy
from disentwine.metrics.disentanglement.mig import mig
from disentwine.metrics.disentanglement.sap import sap
from disentwine.metrics.disentanglement.z_diff import z_diff
from disentwine.metrics.images import reconstruction_error
from disentwine.runs.run import Run
from disentwine.studies.disentanglement.trials import LONG
from disentwine.studies.learning_curves import costs, read_learning_curve, scores_after
from disentwine.studies.trial import Baseline, TrialResult

MINUTES = (10, 30, 90)
"""When the score of a training is told."""

LIMIT, WATCHED_IMAGES = 10_000, 2_000
"""Most images to measure on, in the end and at a checkpoint."""

POINTS, FEW_POINTS = (10_000, 5_000), (2_000, 1_000)
"""Points to learn and to test the classifier of Z-diff: of codes, and of thousands of pixels."""

MANY_PAIRS = 200
"""Z-diff is also told of more pairs a point than usual (64): neither paper says how many it took."""

WATCHED = ("z-diff", "z-diff-no-shape", "sap", "sap-all-units", "reconstruction-error")


def measure(
    measured: Run | Baseline, *, limit: int = LIMIT, points: tuple[int, int] = POINTS
) -> list[Score]:
    """Scores of the test split; of a training also those of the validation split, and its costs."""
    dataset = measured.dataset
    test, validation = (
        evenly_spaced(dataset.split[part], limit) for part in ("test", "validation")
    )
    if isinstance(measured, Baseline):
        codes = baseline_codes(measured.name, dataset, test, seed=measured.recipe.seed)
        return code_scores(codes, dataset, test, points=points)
    model, learning_curve = measured.model, read_learning_curve(measured.path)
    chosen_by = model_scores(model, dataset, validation, points=points, floor=False)
    return [
        *model_scores(model, dataset, test, points=points),
        active_units(model.represent(dataset.images[test])),
        *attribute_scores(model, dataset, test, limit=limit),
        *(replace(s, name=f"validation:{s.name}", details={}) for s in chosen_by),
        *costs(learning_curve),
        *scores_after(learning_curve, MINUTES, WATCHED),
    ]


def watch(
    model: Model, dataset: Dataset, *, limit: int = WATCHED_IMAGES, points: Any = FEW_POINTS
) -> dict[str, float]:
    """Scores on some of the validation images, for the course of a training."""
    indices = evenly_spaced(dataset.split["validation"], limit)
    found = model_scores(model, dataset, indices, points=points, floor=False)
    return {score.name: score.value for score in found if score.name in WATCHED}


def model_scores(
    model: Model,
    dataset: Dataset,
    indices: IndexArray,
    *,
    points: tuple[int, int],
    floor: bool = True,
) -> list[Score]:
    """What codes know of factors, and how well images are reconstructed."""
    images = dataset.images[indices]
    codes = model.represent(images)
    return [
        *code_scores(codes, dataset, indices, points=points, inactive=ALIVE, floor=floor),
        reconstruction_error(images, model.reconstruct(images)),
    ]


def code_scores(
    codes: NDArray[np.floating[Any]],
    dataset: Dataset,
    indices: IndexArray,
    *,
    points: tuple[int, int],
    inactive: float = 0.0,
    floor: bool = True,
) -> list[Score]:
    """Z-diff of all factors and without the shape, by logistic regression and by an SVM as Kumar et
    al. have it, SAP of active codes and of all, and MIG."""
    factors: FloatArray = dataset.factors[indices]
    names = list(dataset.names)
    columns = {"": list(range(len(names)))}
    if "shape" in names:
        columns["-no-shape"] = [i for i, name in enumerate(names) if name != "shape"]
    train, test = points if codes.shape[1] <= 100 else FEW_POINTS
    options: dict[str, Any] = {"train": train, "test": test}
    scores = []
    for suffix, kept in columns.items():
        by_svm = z_diff(codes, factors[:, kept], protocol="paper", floor=False, **options)
        common = z_diff(codes, factors[:, kept], floor=floor, **options)
        scores.append(replace(common, name=f"z-diff{suffix}"))
        scores.append(replace(by_svm, name=f"z-diff{suffix}-svm"))
    of_more = z_diff(codes, factors, pairs=MANY_PAIRS, floor=False, **options)
    scores.append(replace(of_more, name=f"z-diff-{MANY_PAIRS}-pairs"))
    kinds = [factor.kind for factor in dataset.spec]
    found = sap(codes, factors, kinds=kinds, inactive=inactive, floor=floor)
    of_all = replace(sap(codes, factors, kinds=kinds, floor=False), name="sap-all-units")
    scores += [found, of_all, mig(codes, factors, floor=floor)]
    if "orientation" in names:
        # It turns round, and squares and ellipses repeat themselves: no line can follow it.
        gaps = np.delete(found.details["gaps"], names.index("orientation"))
        scores.append(Score("sap-no-orientation", float(gaps.mean()), n=found.n))
    return scores


def attribute_scores(
    model: Model, dataset: Dataset, test: IndexArray, *, limit: int
) -> list[Score]:
    """How well attribute vectors tell yes from no, where all factors are such."""
    if any(factor.kind != "binary" for factor in dataset.spec):
        return []
    train = evenly_spaced(dataset.split["train"], limit)
    codes, test_codes = (model.represent(dataset.images[part]) for part in (train, test))
    found = attribute_accuracy(codes, dataset.factors[train], test_codes, dataset.factors[test])
    each = zip(dataset.names, found.details["per_attribute"], strict=True)
    return [found, *(Score(f"{found.name}:{name}", value, n=found.n) for name, value in each)]


def best_setting(
    results: Sequence[TrialResult], system: str, *, by: str, error_at_most: float | None = None
) -> list[TrialResult]:
    """The outcomes of a system's best setting on each data set, as rows of their own.

    The setting is chosen by its mean on the validation split over seeds, among those with as many seeds
    as any, since one of many single trainings is the best by luck; longer trainings, which have an
    advantage of their own, do not count. Where there is but one such setting, nothing is chosen.

    Arguments:
        outcomes: of all settings, told apart by their notes.
        system: whose.
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
    """What a second row of the same trainings tells: what they cost stands in the first."""
    return tuple(s for s in scores if not re.search("seconds-|megabytes|-minutes$", s["name"]))


def mean_of(results: Sequence[TrialResult], name: str) -> float:
    """The mean of a score over outcomes that have it; NaN where none has."""
    values = [s["value"] for o in results for s in o.scores if s["name"] == name]
    return float(np.mean(values)) if values else float("nan")
