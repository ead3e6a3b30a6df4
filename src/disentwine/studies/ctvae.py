"""CT-VAE's Table 1: which action was it, and the images that actions make against the real ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from disentwine.contracts.score import Score
from disentwine.contracts.transitions import Transitions
from disentwine.data.transitions import transitions
from disentwine.errors import DataError, UsageError
from disentwine.metrics.actions import retrieval_scores
from disentwine.metrics.info_mec import info_mec
from disentwine.metrics.reconstruction import reconstruction_error
from disentwine.report.actions import MOST_PAIRS, action_scores, leak_scores, walk_scores
from disentwine.report.reader import STEPS as STEPS_OF_READER
from disentwine.report.reader import Reader, train_reader
from disentwine.report.siamese import STEPS as STEPS_OF_SIAMESE
from disentwine.report.siamese import Siamese, train_siamese
from disentwine.studies.action_pictures import (
    confusion_pictures,
    graph_pictures,
    repeated_pictures,
)
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Outcome, Trial
from disentwine.training.run import Run

Setting = tuple[str, str, tuple[str, ...]]
"""Data set, recipe and what is changed in it."""

OWN: Setting = ("shapes3d", "ct-vae-shapes3d", ())
"""What is drawn here, and so is always at hand."""

SETTINGS: tuple[Setting, ...] = (
    ("sprites-reed", "ct-vae-sprites", ("data.name=sprites-reed",)),
    ("sprites-lpc", "ct-vae-sprites", ()),
    ("shapes3d-authors", "ct-vae-shapes3d", ("data.name=shapes3d-authors",)),
    OWN,
    ("dsprites", "ct-vae-dsprites", ()),
    ("dsprites-rerender", "ct-vae-dsprites", ("data.variant=rerender",)),
    ("shapes2d", "ct-vae-shapes2d", ()),
    ("cars3d", "ct-vae-cars3d", ()),
)
"""The longest first, so that no core waits for it at the end."""

SAME = dict.fromkeys(("dsprites", "dsprites-rerender", "shapes2d"), "dsprites")
"""Settings of the same pictures, of which the first that is at hand is taken."""

SMALL: Setting = (
    "shapes3d",
    "ct-vae-shapes3d",
    ("data.hues=3", "data.scales=4", "data.orientations=5"),
)

VARIANTS = {
    "as the paper trains": (
        "model.activation=relu",
        "model.edges=sampled",
        "model.two_way=false",
        "model.codebook_training=gradient",
        "model.rivals=null",
        "model.compared=1",
        "model.messages=attention",
        "model.outcome=likeliest",
    ),
    "attention": ("model.messages=attention",),
    "joint": ("model.joint=true",),
    "latent actions": ("model.labels=latent", "model.rivals=null", "model.compared=1"),
}
"""What is compared on one data set and with one seed."""

COMPARED_ON = "cars3d"
QUICK = ("training.steps=16", "model.pretraining=8", "training.batch_size=16")

PUBLISHED: Published = {
    ("ct-vae", data, metric): value
    for data, action, factor in (
        ("cars3d", 0.71, 0.94),
        ("shapes3d-authors", 0.83, 0.90),
        ("sprites-reed", 0.42, 0.82),
        ("dsprites", 0.44, 0.58),
    )
    for metric, value in (("action-accuracy", action), ("factor-accuracy", factor))
}
"""Disentanglement of Latent Representations via Causal Interventions, G. Gendron, M. Witbrock and
G. Dobbie, 2023, Table 1. Other pictures of the same factors, such as our own, have no number there."""

SIAMESE = "siamese:"


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """CT-VAE on every data set at hand; in a second stage, its variants on one of them."""
    if profile == "smoke":
        return [_trial(SMALL, seed, *QUICK) for seed in seeds[:2]]
    found: dict[str, Setting] = {}
    for setting in SETTINGS:
        pictures = SAME.get(setting[0], setting[0])
        if pictures not in found and _at_hand(setting):
            found[pictures] = setting
    made = [_trial(setting, seed) for seed in seeds for setting in found.values()]
    compared = found.get(COMPARED_ON, OWN)
    return made + [
        replace(_trial(compared, seeds[0], *overrides, note=note), stage=2)
        for note, overrides in VARIANTS.items()
    ]


def _trial(setting: Setting, seed: int, *more: str, note: str = "") -> Trial:
    data, recipe, overrides = setting
    return Trial("ct-vae", data, seed, recipe, (*overrides, *more), note)


def _at_hand(setting: Setting) -> bool:
    try:
        _trial(setting, 0).read_recipe().build_dataset()
    except (DataError, UsageError):
        return False
    return True


def measure(
    run: Run,
    *,
    most: int = MOST_PAIRS,
    reader_steps: int = STEPS_OF_READER,
    siamese_steps: int = STEPS_OF_SIAMESE,
) -> list[Score]:
    """Table 1, images after one action and after five, what else moves, and the codes' modularity."""
    model: Any = run.model
    data = yaml.safe_dump(run.recipe.data)
    pairs = _pairs(run)
    scores = action_scores(model, pairs, most=most)
    scores += walk_scores(model, pairs)
    for leak in leak_scores(model, _reader(data, reader_steps), pairs, most=most):
        scores += [leak, Score(f"{leak.name}-floor", cast(float, leak.noise_floor), leak.n)]
    test = np.random.default_rng(0).permutation(pairs.dataset.split["test"])[: 2 * most]
    images = pairs.dataset.images[test]
    scores.append(reconstruction_error(images, model.reconstruct(images)))
    scores += _modularity(model, pairs, test)
    return scores + _siamese_scores(run, most=most, steps=siamese_steps)


def _siamese_scores(run: Run, *, most: int, steps: int) -> list[Score]:
    """What the network that learns nothing else retrieves; its own minutes and updates are details."""
    pairs = _pairs(run)
    start = time.process_time()
    network = _siamese(yaml.safe_dump(run.recipe.data), steps, run.recipe.seed)
    x, y, actions = pairs.batch(pairs.pairs["test"][:most])
    found = retrieval_scores(
        network.retrieve(x, y),
        actions,
        names=pairs.actions,
        factors=pairs.factor_of_action.tolist(),
    )
    own = {"minutes": (time.process_time() - start) / 60, "updates": steps}
    return [
        replace(score, name=f"{SIAMESE}{score.name}", details={**score.details, **own})
        for score in found
    ]


def _modularity(model: Any, pairs: Transitions, images: Any) -> list[Score]:
    """InfoMEC of the quantized codes (Disentanglement via Latent Quantization, K. Hsu et al., 2023)."""
    dataset = pairs.dataset
    found = info_mec(
        np.asarray(model.represent(dataset.images[images])),
        dataset.factors[images],
        discrete_codes=True,
        kinds=[factor.kind for factor in dataset.spec],
    )
    return [
        Score(name.replace("_", "-"), float(found.details[name]), found.n, noise_floor=floor)
        for name, floor in found.details["floors"].items()
    ]


OPENED: dict[str, Transitions] = {}
"""The pairs of the data set that this process measured last."""


def _pairs(run: Run) -> Transitions:
    data = yaml.safe_dump(run.recipe.data)
    if data not in OPENED:
        OPENED.clear()
        OPENED[data] = transitions(run.dataset)
    return OPENED[data]


@lru_cache(maxsize=1)
def _reader(data: str, steps: int) -> Reader:
    """One reader a data set and process; it is the same in every process."""
    dataset = OPENED[data].dataset
    view = copy(dataset)
    view.images = dataset.images
    test = np.random.default_rng(0).permutation(dataset.split["test"])[:MOST_PAIRS]
    view.split = {**dataset.split, "test": test}
    return train_reader(view, steps=steps)


@lru_cache(maxsize=1)
def _siamese(data: str, steps: int, seed: int) -> Siamese:
    return train_siamese(OPENED[data], steps=steps, seed=seed)


def more(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Rows of what needs no CT-VAE: the siamese network, and always the commonest answer."""
    made = []
    for outcome in outcomes:
        if outcome.trial.note:
            continue
        siamese = [
            {**score, "name": score["name"].removeprefix(SIAMESE)}
            for score in outcome.scores
            if score["name"].startswith(SIAMESE)
        ]
        floor = [
            {**score, "value": score["noise_floor"], "noise_floor": None}
            for score in outcome.scores
            if score["name"] in ("action-accuracy", "factor-accuracy")
        ]
        for score in siamese:
            # Minutes were not recorded apart from the beginning: then they are those of all together.
            minutes = score["details"].get("minutes", outcome.minutes)
            updates = score["details"].get("updates", STEPS_OF_SIAMESE)
            how = f"siamese network ({updates} updates)"
            trial = replace(outcome.trial, system="siamese network", baseline=how)
            made.append(Outcome(trial, (score,), minutes))
        trial = replace(outcome.trial, system="commonest action", baseline="commonest action")
        made.append(Outcome(trial, tuple(floor), 0.0))
    return made


def figures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """Repeated interventions, what actions touch, and which are taken for which."""
    return [
        *repeated_pictures(outcomes, runs, folder),
        *graph_pictures(outcomes, runs, folder),
        *confusion_pictures(outcomes, folder),
    ]


CTVAE = Study(
    name="ctvae",
    about="CT-VAE, Table 1 and interventions against the real images",
    trials=trials,
    measure={
        "paper": measure,
        "smoke": partial(measure, most=60, reader_steps=10, siamese_steps=10),
    },
    published=PUBLISHED,
    tables={
        "Which action was it (test pairs)": [
            Column("action accuracy", "action-accuracy", form=".1%"),
            Column("factor accuracy", "factor-accuracy", form=".1%"),
        ],
        "Images after an action (test pairs)": [
            Column("error", "intervention-error", form=".2g"),
            Column("over reconstruction", "intervention-ratio", form=".2f"),
            Column("share of doing nothing", "intervention-share", form=".1%"),
            Column("five actions over one", "repeated-ratio", form=".2f"),
            Column("others moved (deviations)", "action-leak", form=".3f"),
            Column("reconstructed", "action-leak-floor", form=".3f"),
            Column("moved after five", "action-leak-after-5", form=".3f"),
            Column("reconstructed", "action-leak-after-5-floor", form=".3f"),
            Column("own factor's error", "action-error", form=".3f"),
            Column("reconstructed", "action-error-floor", form=".3f"),
        ],
        "Codes (test images)": [
            Column("reconstruction", "reconstruction-error", form=".2g"),
            Column("InfoM", "info-m", form=".2f"),
            Column("InfoE", "info-e", form=".2f"),
            Column("InfoC", "info-c", form=".2f"),
        ],
    },
    figures=figures,
    more=more,
)
