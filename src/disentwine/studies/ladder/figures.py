"""Figures of hierarchical VAEs: likelihood, KL per layer and latent, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np
import yaml

from disentwine import figures
from disentwine.core.dataset import evenly_spaced
from disentwine.core.random import fixed_noise
from disentwine.core.types import FloatArray, IndexArray
from disentwine.figures.comparison import SERIES_STYLES
from disentwine.models.hierarchical.base import HierarchicalModel
from disentwine.nn.images import evaluation_mode
from disentwine.runs.recipe import Recipe
from disentwine.runs.run import Run
from disentwine.studies.figures import FigureFile, FigureFiles, draw_or_keep
from disentwine.studies.learning_curves import LearningCurve
from disentwine.studies.trial import Trial, TrialResult
from disentwine.training.trainer import BatchSource

IMAGES = 500
MOST_CLASSES = 10


def learning_curve_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """The bound on training and validation images over epochs (fig. 2), without the first fifth, which
    would dominate the scale."""
    written: FigureFiles = []
    for data, deepest in _deepest([o for o in results if o.learning_curve]).items():
        curves = []
        for name, result in deepest.items():
            learning_curve = result.learning_curve[max(1, len(result.learning_curve) // 5) :]
            scores = {
                f"log-likelihood of {title} images": [r["scores"][part] for r in learning_curve]
                for part, title in (("train", "training"), ("validation", "validation"))
            }
            curves.append(figures.ScoreCurve(name, _epochs(result.trial, learning_curve), scores))
        figure = figures.score_curves(curves, across="epochs")
        path = figures.save_figure(figure, folder / f"learning-curve-{data}.png")
        written.append((f"Log-likelihood during training on {data}", path))
    return written


def budget_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """The log-likelihood of each system by the number of updates of a complete training."""
    written: FigureFiles = []
    for data in dict.fromkeys(result.trial.data for result in results):
        found: dict[str, dict[int, list[float]]] = {}
        for result in _of_most_layers(results, data):
            if result.trial.after is None:
                steps = result.trial.read_recipe().training["steps"]
                value = _value(result, "log-likelihood")
                found.setdefault(result.trial.system, {}).setdefault(steps, []).append(value)
        if any(len(budgets) > 1 for budgets in found.values()):
            figure = figures.score_curves(
                _mean_curves(found),
                across="updates, each point a complete training",
                logarithmic=True,
                ticks=sorted({steps for budgets in found.values() for steps in budgets}),
            )
            path = figures.save_figure(figure, folder / f"budget-{data}.png")
            written.append((f"Log-likelihood by training length on {data}", path))
    return written


def depth_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """The log-likelihood of each system by the number of layers (fig. 3)."""
    written: FigureFiles = []
    for data in dict.fromkeys(result.trial.data for result in results):
        found: dict[str, dict[int, list[float]]] = {}
        for result in results:
            if result.trial.data == data and "," not in result.trial.note:
                depth = _depth(result)
                value = _value(result, "log-likelihood")
                found.setdefault(result.trial.system, {}).setdefault(depth, []).append(value)
        if any(len(depths) > 1 for depths in found.values()):
            figure = figures.score_curves(_mean_curves(found), across="layers")
            path = figures.save_figure(figure, folder / f"depth-{data}.png")
            written.append((f"Log-likelihood by the number of layers on {data}", path))
    return written


def activity_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """KL per latent over epochs (fig. 4)."""
    written: FigureFiles = []
    for data, compared in _compared([o for o in results if o.learning_curve]).items():
        activity, at, layers = {}, {}, {}
        for name, result in compared.items():
            activity[name] = np.array([r["scores"]["unit-kl"] for r in result.learning_curve])
            at[name] = np.array(_epochs(result.trial, result.learning_curve))
            layers[name] = _unit_layers(result.trial)
        figure = figures.activity_over_training(activity, at=at, layers=layers)
        path = figures.save_figure(figure, folder / f"activity-{data}.png")
        written.append((f"KL per latent during training on {data}", path))
    return written


def layer_figures(results: Sequence[TrialResult], folder: Path) -> FigureFiles:
    """KL and number of active latents of each layer after training (fig. 5)."""
    written: FigureFiles = []
    for data, compared in _compared(results).items():
        curves = []
        for name, result in compared.items():
            numbers = range(1, _depth(result) + 1)
            scores = {
                "KL divergence of a layer (nats)": [_value(result, f"kl_{i}") for i in numbers],
                "active latents": [_value(result, f"active-units:{i}") for i in numbers],
            }
            curves.append(figures.ScoreCurve(name, list(numbers), scores))
        figure = figures.score_curves(curves, across="layer, from the image up")
        path = figures.save_figure(figure, folder / f"layers-{data}.png")
        written.append((f"KL and active latents per layer on {data}", path))
    return written


def class_figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Principal components of each layer's latents, sampled from the posterior, by class (fig. 6)."""
    written: FigureFiles = []
    for data, compared in _compared(results).items():
        figure_file = (
            f"Principal components of each layer on {data}",
            folder / f"classes-{data}.png",
        )
        written += draw_or_keep([figure_file], compared, runs, partial(_draw_classes, figure_file))
    return written


def _draw_classes(figure_file: FigureFile, loaded: Mapping[str, Run]) -> FigureFiles:
    dataset = next(iter(loaded.values())).dataset
    factor = dataset.spec[0]
    if factor.kind != "categorical" or len(factor.values or ()) > MOST_CLASSES:
        return []
    test = evenly_spaced(dataset.split["test"], IMAGES)
    points = {
        name: [principal_components(z) for z in sampled_latents(run, test)]
        for name, run in loaded.items()
    }
    names = [str(value) for value in factor.values or ()]
    figure = figures.layer_maps(points, dataset.factors[test, 0], names=names)
    figures.save_figure(figure, figure_file[1])
    return [figure_file]


def sampled_latents(run: Run, indices: IndexArray) -> list[FloatArray]:
    """One sample of each layer's latents for images, with fixed noise.

    Samples, not means: the means of an inactive layer differ slightly between images.
    """
    model = cast(HierarchicalModel, run.model)
    with evaluation_mode(model), fixed_noise(0):
        layers = model.infer(BatchSource.like(model, run.dataset).take(indices).x)
    return [layer.z.double().cpu().numpy() for layer in layers]


def principal_components(codes: FloatArray) -> FloatArray:
    """The first two principal components of a table (n, d), (n, 2); a missing second one is 0.

    >>> line = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> np.abs(principal_components(line)[:, 1]).max() < 1e-9
    np.True_
    """
    centred = codes.astype(np.float64) - codes.mean(axis=0, dtype=np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    found = centred @ axes[:2].T
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def _unit_layers(trial: Trial) -> list[int]:
    """The layer of each latent, 1 next to the image."""
    sizes = trial.read_recipe().model["layers"]
    return [layer for layer, size in enumerate(sizes, start=1) for _ in range(size)]


def _depth(result: TrialResult) -> int:
    """Layers of a note such as "64-32-16, 20,000 steps"."""
    return result.trial.note.partition(",")[0].count("-") + 1


def _of_most_layers(results: Sequence[TrialResult], data: str) -> list[TrialResult]:
    here = [result for result in results if result.trial.data == data]
    most = max(map(_depth, here))
    return [result for result in here if _depth(result) == most]


def _setting(result: TrialResult) -> str:
    """The part after the layers of a note such as "64-32-16, 20,000 steps"."""
    return result.trial.note.partition(", ")[2]


def _deepest(results: Sequence[TrialResult]) -> dict[str, dict[str, TrialResult]]:
    """The first result of each system with most layers on each data set, once for each setting."""
    found: dict[str, dict[str, TrialResult]] = {}
    for data in dict.fromkeys(result.trial.data for result in results):
        same = found[data] = {}
        for result in _of_most_layers(results, data):
            name = ", ".join(filter(None, (result.trial.system, _setting(result))))
            same.setdefault(name, result)
        found[data] = dict(list(same.items())[: len(SERIES_STYLES)])
    return found


def _compared(results: Sequence[TrialResult]) -> dict[str, dict[str, TrialResult]]:
    """The first result of each system with most layers on each data set, in the setting that most
    systems share."""
    found: dict[str, dict[str, TrialResult]] = {}
    for data in dict.fromkeys(result.trial.data for result in results):
        settings: dict[str, dict[str, TrialResult]] = {}
        for result in _of_most_layers(results, data):
            settings.setdefault(_setting(result), {}).setdefault(result.trial.system, result)
        found[data] = max(settings.values(), key=len)
    return found


def _mean_curves(found: Mapping[str, Mapping[int, Sequence[float]]]) -> list[figures.ScoreCurve]:
    """Mean log-likelihood over seeds of each system by number."""
    return [
        figures.ScoreCurve(
            system,
            sorted(values),
            {"log-likelihood (test split)": [np.mean(values[at]) for at in sorted(values)]},
        )
        for system, values in found.items()
    ]


def _epochs(trial: Trial, learning_curve: LearningCurve) -> list[float]:
    """Epochs of the records of a learning curve; a continued training counts on."""
    recipe = trial.read_recipe()
    before = trial.after.read_recipe().training["steps"] if trial.after is not None else 0
    images = _training_images(yaml.safe_dump(recipe.data))
    return [recipe.training["batch_size"] * (before + r["step"]) / images for r in learning_curve]


@lru_cache
def _training_images(data: str) -> int:
    return len(Recipe(yaml.safe_load(data), {}, {}).build_dataset().split["train"])


def _value(result: TrialResult, name: str) -> float:
    return next((float(s["value"]) for s in result.scores if s["name"] == name), float("nan"))
