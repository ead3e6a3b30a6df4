"""The ladder VAE's tables: likelihoods on MNIST and OMNIGLOT, and which layers stay alive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from disentwine.contracts.dataset import Dataset, IndexArray
from disentwine.contracts.model import Layered, Model
from disentwine.contracts.score import Score
from disentwine.data.splits import spread
from disentwine.figures.layers import ACTIVE
from disentwine.objectives.elbo import kl_to_standard_normal
from disentwine.report.evaluation import Infers, evaluate
from disentwine.report.likelihood import log_likelihood
from disentwine.studies.courses import costs, read_course
from disentwine.studies.ladder_pictures import (
    activity_pictures,
    class_pictures,
    course_pictures,
    depth_pictures,
    layer_pictures,
)
from disentwine.studies.pictures import Pictures
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trials import Outcome, Trial
from disentwine.training.run import Run
from disentwine.training.sampling import BatchSource

LAYERS, HIDDEN = (64, 32, 16, 8, 4), (512, 256, 128, 64, 32)
SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "ladder-vae": ("model.name=ladder-vae",),
    "vae+bn+wu": ("model.name=hierarchical-vae", "model.batch_norm=true"),
    "vae+bn": ("model.name=hierarchical-vae", "model.batch_norm=true"),
    "vae": ("model.name=hierarchical-vae",),
}
WARMED_UP = ("ladder-vae", "vae+bn+wu")
WARM_UP_SHARE = 0.3
"""Of the updates. The paper's 200 epochs were a tenth of its 2,000; of fewer, a tenth is too soon over."""

STEPS = {"mnist": 80_000, "omniglot": 15_000}
"""At batches of 256: 80 and 14 minutes on one core. The paper's 2,000 epochs are 430,000 and 180,000."""

FINE_TUNED = 10_000
"""Updates on MNIST with ten draws of z an image, after all others."""

COMPARED_STEPS = 20_000
"""Of all four systems on MNIST, where only the ladder is trained for long."""

SAVES = 20
SAMPLES, FEW_SAMPLES = 5_000, 100
CORRECTED_ON = {"mnist": 2_000, "omniglot": 1_000}
"""Test images that get all 5,000 samples; see `likelihood`. 1,000 of them take two minutes and a half."""

WATCHED_IMAGES, WATCHED_SAMPLES = 500, 50

TABLE = {
    "64": (None, -104.51, -105.62, -111.21),
    "64-32": (-102.63, -102.61, -105.51, -110.58),
    "64-32-16": (-102.18, -102.52, -106.09, -111.26),
    "64-32-16-8": (-102.21, -102.66, -105.66, -111.58),
    "64-32-16-8-4": (-102.11, -102.48, -105.45, -110.46),
}
ON_OMNIGLOT: Published = {
    (system, "omniglot", "log-likelihood", sizes): value
    for sizes, values in TABLE.items()
    for system, value in zip(SYSTEMS, values, strict=True)
    if value is not None
}
PUBLISHED: Published = {
    ("ladder-vae", "mnist", "log-likelihood", "64-32-16-8-4"): -82.12,
    ("ladder-vae", "mnist", "log-likelihood", "64-32-16-8-4, fine-tuned, IW=10"): -81.74,
    **ON_OMNIGLOT,
}
"""Ladder Variational Autoencoders, C. Sonderby et al., 2016, tables 1 and 2, in nats."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """The ladder on MNIST, and the table on OMNIGLOT, whose drawings are shrunk from the originals.

    Stages: 1, five layers, one seed; 2, fewer layers on OMNIGLOT; 3, all systems on MNIST, and
    other seeds of five layers on OMNIGLOT; 4, the ladder on MNIST fine-tuned, and its other seeds.
    """
    if profile == "smoke":
        made = [("ladder-vae", 2), ("vae+bn+wu", 2), ("vae", 2), ("vae", 1)]
        return [_smoke(system, depth, seed) for system, depth in made for seed in seeds]
    first, *others = seeds
    deepest = len(LAYERS)
    made_first = [_trial("ladder-vae", "mnist", first)]
    made_first += [_trial(system, "omniglot", first) for system in SYSTEMS]
    shallow = [
        _trial(system, "omniglot", first, depth=depth, stage=2)
        for depth in range(deepest - 1, 0, -1)
        for system in SYSTEMS
        if (system, depth) != ("ladder-vae", 1)  # which is the vae+bn+wu
    ]
    compared = [_trial(system, "mnist", first, steps=COMPARED_STEPS, stage=3) for system in SYSTEMS]
    again = [_trial(s, "omniglot", seed, stage=3) for seed in others for s in SYSTEMS]
    long = [_trial("ladder-vae", "mnist", seed, stage=4) for seed in others]
    return [*made_first, *shallow, *compared, *again, _fine_tuned(first), *long]


def _fine_tuned(seed: int) -> Trial:
    """The ladder on MNIST, whose last updates maximise the bound of ten draws."""
    usual = _trial("ladder-vae", "mnist", seed, stage=4)
    last = (
        "model.importance_samples=10",
        f"model.importance_from={STEPS['mnist']}",
        f"training.steps={STEPS['mnist'] + FINE_TUNED}",
    )
    return replace(
        usual, overrides=(*usual.overrides, *last), note=f"{usual.note}, fine-tuned, IW=10"
    )


def _trial(
    system: str,
    data: str,
    seed: int,
    *,
    depth: int = len(LAYERS),
    steps: int | None = None,
    stage: int = 1,
) -> Trial:
    updates = steps or STEPS[data]
    sizes = "-".join(map(str, LAYERS[:depth]))
    return Trial(
        system,
        data,
        seed,
        "ladder-vae-mnist",
        (
            f"data.name={data}",
            "data.binarise=dynamic",
            *_model(system, LAYERS[:depth], HIDDEN[:depth], updates),
            "training.final_learning_rate=.00005",
            f"training.steps={updates}",
            f"training.save_every={updates // SAVES}",
        ),
        note=sizes if steps is None else f"{sizes}, {steps:,} steps",
        stage=stage,
    )


def _model(
    system: str, layers: Sequence[int], hidden: Sequence[int], steps: int
) -> tuple[str, ...]:
    warm_up = int(WARM_UP_SHARE * steps) if system in WARMED_UP else 0
    return (
        *SYSTEMS[system],
        f"model.layers={list(layers)}".replace(" ", ""),
        f"model.hidden={list(hidden)}".replace(" ", ""),
        f"model.warm_up_steps={warm_up}",
    )


def _smoke(system: str, depth: int, seed: int) -> Trial:
    layers = (8, 4)[:depth]
    overrides = (
        "data.name=shapes2d",
        *_model(system, layers, (32, 16)[:depth], 20),
        "training.steps=20",
        "training.batch_size=32",
        "training.save_every=10",
    )
    sizes = "-".join(map(str, layers))
    return Trial(system, "shapes2d", seed, "ladder-vae-mnist", overrides, note=sizes)


def measure(
    run: Run, *, limit: int | None = None, samples: int = SAMPLES, few: int = FEW_SAMPLES
) -> list[Score]:
    """The likelihood of the test split, what each layer carries, and what it cost."""
    dataset, model, seed = run.dataset, run.model, run.recipe.seed
    test = spread(dataset.split["test"], limit or len(dataset))
    corrected = spread(test, CORRECTED_ON.get(run.recipe.data["name"], len(test)))
    found = evaluate(
        model, dataset, "none", step=run.recipe.training["steps"], seed=seed, limit=limit or 5_000
    )
    kl = cast(Any, found.unit_kl)
    of = np.array(cast(Layered, model).unit_layers)
    # Not the loss, which may be that of several samples together.
    terms = [s for s in found.scores if s.name == "reconstruction" or s.name.startswith("kl_")]
    n = len(found.indices)
    return [
        likelihood(model, dataset, test, corrected, samples=samples, few=few, seed=seed),
        Score("elbo", -sum(term.value for term in terms), n=n),
        *(replace(s, details={}) for s in found.scores if s.name.startswith("kl_")),
        Score("active-units", float((kl > ACTIVE).sum()), n=n, details={"kl": kl}),
        *(
            Score(f"active-units:{i}", float((kl[of == i] > ACTIVE).sum()), n=n)
            for i in range(1, of.max() + 1)
        ),
        *costs(read_course(run.path)),
    ]


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
    if len(corrected) == len(test):
        return replace(many, details=details | {"standard_error": many.details["standard_error"]})
    loose = bound(test, samples=few)
    per_image = loose.details["per_image"]
    gap = many.details["per_image"] - per_image[np.searchsorted(test, corrected)]
    details["error_of_correction"] = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    details["standard_error"] = loose.details["standard_error"]
    return Score("log-likelihood", float(loose.value + gap.mean()), n=len(test), details=details)


@torch.no_grad()
def watch(
    model: Model, dataset: Dataset, *, images: int = WATCHED_IMAGES, samples: int = WATCHED_SAMPLES
) -> dict[str, Any]:
    """The bound of some training and validation images, and what each unit carries."""
    parts = {part: spread(dataset.split[part], images) for part in ("train", "validation")}
    bounds = {
        part: log_likelihood(model, dataset, indices, samples=samples, progress=False).value
        for part, indices in parts.items()
    }
    x = BatchSource(dataset, device=next(model.parameters()).device).take(parts["validation"]).x
    q = cast(Infers, model).posterior(x)
    kl = kl_to_standard_normal(q.mean, q.log_variance).double().mean(0)
    return {**bounds, "unit-kl": kl.tolist()}


def figures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """Figures 2 to 6 of the paper."""
    return [
        *course_pictures(outcomes, runs, folder),
        *depth_pictures(outcomes, folder),
        *activity_pictures(outcomes, runs, folder),
        *layer_pictures(outcomes, folder),
        *class_pictures(outcomes, runs, folder),
    ]


LAYER_NUMBERS = range(1, len(LAYERS) + 1)

LADDER = Study(
    name="ladder",
    about="Ladder VAE, likelihoods on MNIST and OMNIGLOT, and the layers that stay alive",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=60, samples=20, few=5)},
    published=PUBLISHED,
    tables={
        "Likelihood (test split, nats)": [
            Column("log-likelihood, 5,000 samples", "log-likelihood", form=".2f"),
            Column("lower bound, 1 sample", "elbo", form=".2f"),
            Column("active units", "active-units", form=".0f"),
            Column("seconds per 1,000 steps", "seconds-per-1000-steps", form=".1f"),
            Column("peak MB", "peak-megabytes", form=".0f"),
        ],
        "What each layer carries (nats)": [
            Column(f"layer {i}", f"kl_{i}", form=".2f") for i in LAYER_NUMBERS
        ],
        "Units of each layer that carry more than 0.01 nats": [
            Column(f"layer {i}", f"active-units:{i}", form=".0f") for i in LAYER_NUMBERS
        ],
    },
    figures=figures,
    watch={"paper": watch, "smoke": partial(watch, images=20, samples=5)},
    stages=2,
)
