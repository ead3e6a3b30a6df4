"""The CT-VAE study: trials, variants, tables and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from disentwine.errors import DataError, UsageError
from disentwine.studies.ct_vae.figures import confusion_figures, graph_figures, rollout_figures
from disentwine.studies.ct_vae.measures import SIAMESE, measure
from disentwine.studies.ct_vae.summary import summary
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

NOTES = (
    "*Action retrieval.* Test pairs differ by one step of one factor. *Siamese network*: a supervised "
    "action classifier on both images (baseline). *Commonest action*: always the most frequent action."
    " *Unseen images*: pairs without training images or their exact duplicates.",
    "*Images after an action.* Mean squared pixel error against the real image after the action. "
    "*Relative to reconstruction*: over the reconstruction error of the real image. *Relative to no "
    "action*: over the error of the unchanged image. *After five over after one*: the error of a "
    "rollout of five actions over the error after one; the direction is reversed at the ends of a "
    "factor. *Off-target change*: change of the factors without action, predicted from the model's "
    "images by a concept probe trained on real images, in standard deviations of the factor. "
    "*Reconstruction only*: the same for images that are encoded and decoded. *Own factor's error* is "
    "measured with the same probe.",
    "*Variants* are trained on one data set with one seed, with the recipe's loss weights and updates. "
    "*Paper settings*: sampled edges, codebooks updated by gradient, attention over all nodes, all "
    "actions compared for all pairs. *Joint*: the autoencoder is also trained on pairs. *Latent "
    "actions*: training has no action labels; validation pairs name the actions afterwards. "
    "*Single-step*: without multi-step rollouts. Figures show one seed.",
)

DATASET_NOTES = {
    "dsprites-rerender": (
        "*dsprites-rerender*: our rendering of the 737,280 images of dSprites, not the authors' file."
    ),
    "shapes3d": (
        "*shapes3d*: our rendering of the factors of Shapes3D; no published results apply."
    ),
    "sprites-lpc": (
        "*sprites-lpc* has the nine factors and 18 actions of the paper's Sprites, with four "
        "variants of each layer; *sprites-reed* are the images that the paper cites, with ten "
        "factors."
    ),
    "cars3d": (
        "*cars3d*: most pairs of the paper change the car, ours all three factors equally often; the "
        "last column weighs ours by the paper's frequencies."
    ),
}

Setting = tuple[str, str, tuple[str, ...]]
"""Data set, recipe and changes of the recipe."""

NO_ROLLOUT = ("model.rollout=null",)

OWN: Setting = ("shapes3d", "ct-vae-shapes3d", ())
"""Rendered by this package, and so always available."""

SETTINGS: tuple[Setting, ...] = (
    ("dsprites", "ct-vae-dsprites", ()),
    ("dsprites-rerender", "ct-vae-dsprites", ("data.variant=rerender",)),
    ("shapes2d", "ct-vae-shapes2d", ()),
    ("shapes3d-authors", "ct-vae-shapes3d", ("data.name=shapes3d-authors",)),
    OWN,
    ("sprites-reed", "ct-vae-sprites", ("data.name=sprites-reed", *NO_ROLLOUT)),
    ("cars3d", "ct-vae-cars3d", ()),
    ("sprites-lpc", "ct-vae-sprites", ()),
)
"""The longest training first, so that no core waits for it at the end."""

SAME = dict.fromkeys(("dsprites", "dsprites-rerender", "shapes2d"), "dsprites")
"""Settings with the same images; the first available one is used."""

SMALL: Setting = (
    "shapes3d",
    "ct-vae-shapes3d",
    ("data.hues=3", "data.scales=4", "data.orientations=5"),
)

VARIANTS = {
    "paper settings": (
        "model.transition.activation=relu",
        "model.transition.edges=sampled",
        "model.bidirectional=false",
        "model.autoencoder.codebook_update=gradient",
        "model.contrast=null",
        "model.transition.message_passing=attention",
        "model.readout=argmax",
        *NO_ROLLOUT,
    ),
    "attention": ("model.transition.message_passing=attention",),
    "joint": ("model.joint=true",),
    "latent actions": (
        "model.action_labels=latent",
        "model.contrast=null",
        *NO_ROLLOUT,
    ),
}
"""Variants compared on one data set with one seed; all have the recipe's loss weights."""

COMPARED_ON = "cars3d"

WEIGHED = "action-accuracy-weighed"

SINGLE = "single-step"
"""The note of single-step trainings of recipes with rollouts, also with one seed."""

QUICK = (
    "training.steps=16",
    "model.pretrain_steps=8",
    "model.rollout.from_step=12",
    "training.batch_size=16",
)

PUBLISHED: Published = {
    ("ct-vae", data, metric): value
    for data, action, factor in (
        ("cars3d", 0.71, 0.94),
        ("shapes3d-authors", 0.83, 0.90),
        ("sprites-lpc", 0.42, 0.82),
        ("sprites-reed", 0.42, 0.82),
        ("dsprites", 0.44, 0.58),
    )
    for metric, value in (("action-accuracy", action), ("factor-accuracy", factor))
}
"""Disentanglement of Latent Representations via Causal Interventions, G. Gendron, M. Witbrock and
G. Dobbie, 2023, Table 1. It has no numbers for other images of the same factors, such as ours."""

PAIRS_OF_THE_PAPER = {"cars3d": {"car": 30.0, "azimuth": 6.0, "elevation": 1.0}}
"""Relative frequencies of the factors in the paper's pairs (section 4.1; we assign them by the factors'
numbers of values). Our pairs are uniform over factors, so accuracy is also weighed by these."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """CT-VAE and the supervised action classifier on every available data set; in a second stage variants
    on one of them, in a third single-step trainings."""
    if profile == "smoke":
        return [
            *(_trial(SMALL, seed, *QUICK) for seed in seeds[:2]),
            _action_probe(SMALL, seeds[0]),
        ]
    found: dict[str, Setting] = {}
    for setting in SETTINGS:
        images = SAME.get(setting[0], setting[0])
        if images not in found and _is_available(setting):
            found[images] = setting
    each = [(setting, seed) for seed in seeds for setting in found.values()]
    compared, first = found.get(COMPARED_ON, OWN), seeds[0]
    return [
        *(_trial(*one) for one in each),
        *(_action_probe(*one) for one in each),
        *(_trial(compared, first, *more, note=note, stage=2) for note, more in VARIANTS.items()),
        *(
            _trial(setting, first, *NO_ROLLOUT, note=SINGLE, stage=3)
            for setting in found.values()
            if _trial(setting, first).read_recipe().model["rollout"]
        ),
    ]


def _trial(setting: Setting, seed: int, *more: str, note: str = "", stage: int = 1) -> Trial:
    data, recipe, overrides = setting
    return Trial("ct-vae", data, seed, recipe, (*overrides, *more), note, stage=stage)


def _action_probe(setting: Setting, seed: int) -> Trial:
    data, recipe, overrides = setting
    return Trial(SIAMESE, data, seed, recipe, overrides, baseline=SIAMESE)


def _is_available(setting: Setting) -> bool:
    try:
        _trial(setting, 0).read_recipe().build_dataset()
    except (DataError, UsageError):
        return False
    return True


def derived_rows(results: Sequence[TrialResult]) -> list[TrialResult]:
    """Rows of the most frequent action as a baseline, and accuracies weighed by the frequencies of the
    paper's pairs."""
    made = [replace(o, scores=(weighed,)) for o in results for weighed in _weighed(o)]
    for result in results:
        if result.trial.note or result.trial.baseline:
            continue
        floor = [
            {**score, "value": score["noise_floor"], "noise_floor": None}
            for score in result.scores
            if score["name"] in ("action-accuracy", "factor-accuracy")
        ]
        trial = replace(result.trial, system="commonest action", baseline="commonest action")
        made.append(TrialResult(trial, tuple(floor), 0.0))
    return made


def _weighed(result: TrialResult) -> list[dict[str, Any]]:
    """The mean accuracy over factors, weighed by their frequency in the paper if it is published."""
    shares = PAIRS_OF_THE_PAPER.get(result.trial.data)
    score = next((s for s in result.scores if s["name"] == "action-accuracy"), None)
    if shares is None or score is None or "confusion" not in score["details"]:
        return []
    right = total = 0.0
    for factor, share in shares.items():
        rows = [i for i, name in enumerate(score["details"]["names"]) if name[1:] == factor]
        pairs = [score["details"]["confusion"][i] for i in rows]
        right += (
            share * sum(row[i] for i, row in zip(rows, pairs, strict=True)) / sum(map(sum, pairs))
        )
        total += share
    return [{**score, "name": WEIGHED, "value": right / total, "noise_floor": None, "details": {}}]


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """Rollouts, action graphs and confusion matrices."""
    return [
        *rollout_figures(results, runs, folder),
        *graph_figures(results, runs, folder),
        *confusion_figures(results, folder),
    ]


CTVAE = Study(
    name="ctvae",
    about="CT-VAE, Table 1 and interventions against the real images",
    trials=trials,
    measure={
        "paper": measure,
        "smoke": partial(measure, most=60, probe_steps=10, action_probe_steps=10),
    },
    published=PUBLISHED,
    tables={
        "Action retrieval (test pairs)": [
            Column("action accuracy", "action-accuracy", form=".1%"),
            Column("factor accuracy", "factor-accuracy", form=".1%"),
            Column("action, unseen images", "action-accuracy-unseen", form=".1%"),
            Column("factor, unseen images", "factor-accuracy-unseen", form=".1%"),
            Column("action accuracy, weighed by the paper's pairs", WEIGHED, form=".1%"),
        ],
        "Images after an action (test pairs)": [
            Column("error", "intervention-error", form=".2g"),
            Column("relative to reconstruction", "intervention-ratio", form=".2f"),
            Column("relative to no action", "intervention-share", form=".1%"),
            Column("after five over after one", "rollout-ratio", form=".2f"),
            Column("off-target change", "off-target-change", form=".3f"),
            Column("off-target, reconstruction only", "off-target-change-floor", form=".3f"),
            Column("off-target change after five", "off-target-change-after-5", form=".3f"),
            Column(
                "after five, reconstruction only", "off-target-change-after-5-floor", form=".3f"
            ),
            Column("own factor's error", "action-error", form=".3f"),
            Column("own, reconstruction only", "action-error-floor", form=".3f"),
        ],
        "Codes (test images)": [
            Column("reconstruction", "reconstruction-error", form=".2g"),
            Column("InfoM", "info-m", form=".2f"),
            Column("InfoE", "info-e", form=".2f"),
            Column("InfoC", "info-c", form=".2f"),
        ],
    },
    figures=figures,
    derived_rows=derived_rows,
    summary=summary,
    notes=NOTES,
    dataset_notes=DATASET_NOTES,
)
