"""Pictures of hierarchies side by side: their likelihood, and what each of their layers carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np
import yaml

from disentwine import figures
from disentwine.core.random import fixed_noise
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.splits import evenly_spaced
from disentwine.figures.comparison import SERIES_STYLES
from disentwine.models.hierarchical.base import HierarchicalModel
from disentwine.nn.images import evaluation_mode
from disentwine.runs.recipe import Recipe
from disentwine.runs.run import Run
from disentwine.studies.figures import Picture, Pictures, drawn_or_kept
from disentwine.studies.learning_curves import Course
from disentwine.studies.trial import Outcome, Trial
from disentwine.training.batch_source import BatchSource

IMAGES = 500
MOST_CLASSES = 10


def course_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """The bound on training and validation images over the epochs (fig. 2), without the first of them,
    beside whose leaps all that comes later would be one line."""
    drawn: Pictures = []
    for data, deepest in _deepest([o for o in outcomes if o.course]).items():
        courses = []
        for name, outcome in deepest.items():
            course = outcome.course[max(1, len(outcome.course) // 5) :]
            scores = {
                f"log-likelihood of {title} images": [r["scores"][part] for r in course]
                for part, title in (("train", "training"), ("validation", "validation"))
            }
            courses.append(figures.Course(name, _epochs(outcome.trial, course), scores))
        figure = figures.course_curves(courses, across="epochs")
        path = figures.save_figure(figure, folder / f"course-{data}.png")
        drawn.append((f"Likelihood over training on {data}", path))
    return drawn


def budget_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """The likelihood of each system after whole trainings of more and more updates."""
    drawn: Pictures = []
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        found: dict[str, dict[int, list[float]]] = {}
        for outcome in _of_most_layers(outcomes, data):
            if outcome.trial.after is None:
                steps = outcome.trial.read_recipe().training["steps"]
                value = _value(outcome, "log-likelihood")
                found.setdefault(outcome.trial.system, {}).setdefault(steps, []).append(value)
        if any(len(budgets) > 1 for budgets in found.values()):
            figure = figures.course_curves(
                _mean_courses(found),
                across="updates, each point a whole training",
                logarithmic=True,
                ticks=sorted({steps for budgets in found.values() for steps in budgets}),
            )
            path = figures.save_figure(figure, folder / f"budget-{data}.png")
            drawn.append((f"Likelihood by the length of training on {data}", path))
    return drawn


def depth_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """The likelihood of each system with more and more layers (fig. 3)."""
    drawn: Pictures = []
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        found: dict[str, dict[int, list[float]]] = {}
        for outcome in outcomes:
            if outcome.trial.data == data and "," not in outcome.trial.note:
                depth = _depth(outcome)
                value = _value(outcome, "log-likelihood")
                found.setdefault(outcome.trial.system, {}).setdefault(depth, []).append(value)
        if any(len(depths) > 1 for depths in found.values()):
            figure = figures.course_curves(_mean_courses(found), across="layers")
            path = figures.save_figure(figure, folder / f"depth-{data}.png")
            drawn.append((f"Likelihood by the number of layers on {data}", path))
    return drawn


def activity_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """What each unit carries over the epochs (fig. 4)."""
    drawn: Pictures = []
    for data, compared in _compared([o for o in outcomes if o.course]).items():
        activity, at, layers = {}, {}, {}
        for name, outcome in compared.items():
            activity[name] = np.array([r["scores"]["unit-kl"] for r in outcome.course])
            at[name] = np.array(_epochs(outcome.trial, outcome.course))
            layers[name] = _unit_layers(outcome.trial)
        figure = figures.activity_over_training(activity, at=at, layers=layers)
        path = figures.save_figure(figure, folder / f"activity-{data}.png")
        drawn.append((f"What each unit carries over training on {data}", path))
    return drawn


def layer_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """What each layer carries in the end, and how many of its units (fig. 5)."""
    drawn: Pictures = []
    for data, compared in _compared(outcomes).items():
        courses = []
        for name, outcome in compared.items():
            numbers = range(1, _depth(outcome) + 1)
            scores = {
                "KL divergence of a layer (nats)": [_value(outcome, f"kl_{i}") for i in numbers],
                "its active units": [_value(outcome, f"active-units:{i}") for i in numbers],
            }
            courses.append(figures.Course(name, list(numbers), scores))
        figure = figures.course_curves(courses, across="layer, from the image up")
        path = figures.save_figure(figure, folder / f"layers-{data}.png")
        drawn.append((f"What each layer carries on {data}", path))
    return drawn


def class_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """Principal components of each layer's latents, drawn from their posterior, by class (fig. 6)."""
    drawn: Pictures = []
    for data, compared in _compared(outcomes).items():
        picture = f"Principal components of each layer on {data}", folder / f"classes-{data}.png"
        drawn += drawn_or_kept([picture], compared, runs, partial(_draw_classes, picture))
    return drawn


def _draw_classes(picture: Picture, opened: Mapping[str, Run]) -> Pictures:
    dataset = next(iter(opened.values())).dataset
    factor = dataset.spec[0]
    if factor.kind != "categorical" or len(factor.values or ()) > MOST_CLASSES:
        return []
    test = evenly_spaced(dataset.split["test"], IMAGES)
    points = {
        name: [principal_components(z) for z in drawn_latents(run, test)]
        for name, run in opened.items()
    }
    names = [str(value) for value in factor.values or ()]
    figure = figures.layer_maps(points, dataset.factors[test, 0], names=names)
    figures.save_figure(figure, picture[1])
    return [picture]


def drawn_latents(run: Run, indices: IndexArray) -> list[FloatArray]:
    """One draw of each layer's latents for images, with noise that is always the same.

    Their means would not do: those of a layer that carries nothing differ by little, but differ.
    """
    model = cast(HierarchicalModel, run.model)
    with evaluation_mode(model), fixed_noise(0):
        levels = model.infer(BatchSource.like(model, run.dataset).take(indices).x)
    return [level.z.double().cpu().numpy() for level in levels]


def principal_components(codes: FloatArray) -> FloatArray:
    """The first two of a table (n, d), (n, 2); of one column, that and 0.

    >>> line = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> np.abs(principal_components(line)[:, 1]).max() < 1e-9
    np.True_
    """
    centred = codes.astype(np.float64) - codes.mean(axis=0, dtype=np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    found = centred @ axes[:2].T
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def _unit_layers(trial: Trial) -> list[int]:
    """Which layer each unit belongs to, from the image up."""
    sizes = trial.read_recipe().model["layers"]
    return [layer for layer, size in enumerate(sizes, start=1) for _ in range(size)]


def _depth(outcome: Outcome) -> int:
    """Layers of a note such as "64-32-16, 20,000 steps"."""
    return outcome.trial.note.partition(",")[0].count("-") + 1


def _of_most_layers(outcomes: Sequence[Outcome], data: str) -> list[Outcome]:
    here = [outcome for outcome in outcomes if outcome.trial.data == data]
    most = max(map(_depth, here))
    return [outcome for outcome in here if _depth(outcome) == most]


def _setting(outcome: Outcome) -> str:
    """What else was different, of a note such as "64-32-16, 20,000 steps"."""
    return outcome.trial.note.partition(", ")[2]


def _deepest(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Outcome]]:
    """On each data set the first outcome of each system with most layers; where several were trained
    in different ways, all of them."""
    found: dict[str, dict[str, Outcome]] = {}
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        same = found[data] = {}
        for outcome in _of_most_layers(outcomes, data):
            name = ", ".join(filter(None, (outcome.trial.system, _setting(outcome))))
            same.setdefault(name, outcome)
        found[data] = dict(list(same.items())[: len(SERIES_STYLES)])
    return found


def _compared(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Outcome]]:
    """On each data set the first outcome of each system with most layers, all of the setting that most
    systems were trained in."""
    found: dict[str, dict[str, Outcome]] = {}
    for data in dict.fromkeys(outcome.trial.data for outcome in outcomes):
        settings: dict[str, dict[str, Outcome]] = {}
        for outcome in _of_most_layers(outcomes, data):
            settings.setdefault(_setting(outcome), {}).setdefault(outcome.trial.system, outcome)
        found[data] = max(settings.values(), key=len)
    return found


def _mean_courses(found: Mapping[str, Mapping[int, Sequence[float]]]) -> list[figures.Course]:
    """Likelihoods of each system at each number, over seeds."""
    return [
        figures.Course(
            system,
            sorted(values),
            {"log-likelihood (test split)": [np.mean(values[at]) for at in sorted(values)]},
        )
        for system, values in found.items()
    ]


def _epochs(trial: Trial, course: Course) -> list[float]:
    """When the records of a course were made; one that goes on from another counts on from there."""
    recipe = trial.read_recipe()
    before = trial.after.read_recipe().training["steps"] if trial.after is not None else 0
    images = _training_images(yaml.safe_dump(recipe.data))
    return [recipe.training["batch_size"] * (before + r["step"]) / images for r in course]


@lru_cache
def _training_images(data: str) -> int:
    return len(Recipe(yaml.safe_load(data), {}, {}).build_dataset().split["train"])


def _value(outcome: Outcome, name: str) -> float:
    return next((float(s["value"]) for s in outcome.scores if s["name"] == name), float("nan"))
