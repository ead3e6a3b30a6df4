"""CT-VAE study; notes on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from disentwine.errors import DataError, UsageError
from disentwine.studies.ct_vae.figures import confusion_figures, graph_figures, repeated_figures
from disentwine.studies.ct_vae.measures import SIAMESE, measure
from disentwine.studies.ct_vae.summary import summary
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

NOTES = (
    "*Which action was it.* Pairs are of test images, one step of one factor apart. *ActionProbe "
    "network*: it learns nothing but to tell actions, of both pictures at once. *Commonest action*:"
    " always the same answer. *Of unseen pictures*: pairs of which training saw no picture that "
    "looks exactly the same.",
    "*Images after an action.* Squared errors of a pixel against the real image after the action; "
    "*over reconstruction* is what the action adds to what codes lose, *share of doing nothing* is "
    "beside the error of the unchanged image. *Five actions over one* is the error after the same "
    "action five times, back where it leads no further, over that after one. *Others moved*: "
    "factors that were not acted on, read back from the model's images by a network that knows real"
    " ones, in standard deviations of the factor; *rebuilt only* is what it sees move in images "
    "that are only encoded and painted. *Own factor's error* is read likewise.",
    "*Variants* are of one data set and one seed, with the recipe's losses and updates. *The "
    "paper's options*: sampled edges, codebooks by gradient, attention over all nodes, every action"
    " tried for every pair. *Joint*: the autoencoder learns from pairs too. *Latent actions*: "
    "nobody names actions while they are learnt, validation pairs do afterwards. *Single actions*: "
    "without rows of actions. Pictures are of one seed.",
)

DATASET_NOTES = {
    "dsprites-rerender": (
        "*dsprites-rerender*: the 737,280 scenes of dSprites drawn anew, not their authors' file."
    ),
    "shapes3d": (
        "*shapes3d*: our own drawing of the factors of Shapes3D, so that no published number stands"
        " beside it."
    ),
    "sprites-lpc": (
        "*sprites-lpc* has the nine factors and 18 actions of the paper's Sprites, with four "
        "variants of each layer; *sprites-reed* are the pictures that the paper cites, with ten "
        "factors."
    ),
    "cars3d": (
        "*cars3d*: the paper's pairs are mostly of which car it is, ours of all three factors "
        "alike; in the last column ours are weighed as theirs."
    ),
}

Setting = tuple[str, str, tuple[str, ...]]
"""Data set, recipe and what is changed in it."""

ONE_ACTION = ("model.repeats=null", "model.repeats_from=null", "model.repeats_weight=null")
"""Without rows of actions."""

OWN: Setting = ("shapes3d", "ct-vae-shapes3d", ())
"""What is drawn here, and so is always at hand."""

SETTINGS: tuple[Setting, ...] = (
    ("dsprites", "ct-vae-dsprites", ()),
    ("dsprites-rerender", "ct-vae-dsprites", ("data.variant=rerender",)),
    ("shapes2d", "ct-vae-shapes2d", ()),
    ("shapes3d-authors", "ct-vae-shapes3d", ("data.name=shapes3d-authors",)),
    OWN,
    ("sprites-reed", "ct-vae-sprites", ("data.name=sprites-reed", *ONE_ACTION)),
    ("cars3d", "ct-vae-cars3d", ()),
    ("sprites-lpc", "ct-vae-sprites", ()),
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
    "paper settings": (
        "model.activation=relu",
        "model.edges=sampled",
        "model.two_way=false",
        "model.codebook_training=gradient",
        "model.rivals=null",
        "model.compared=1",
        "model.messages=attention",
        "model.outcome=likeliest",
        *ONE_ACTION,
    ),
    "attention": ("model.messages=attention",),
    "joint": ("model.joint=true",),
    "latent actions": (
        "model.labels=latent",
        "model.rivals=null",
        "model.compared=1",
        *ONE_ACTION,
    ),
}
"""What is compared on one data set and with one seed; losses have the weights of the recipe in all."""

COMPARED_ON = "cars3d"

WEIGHED = "action-accuracy-weighed"

SINGLE = "single-step"
"""The note of trainings without the rows of actions that some recipes have, with one seed too."""

QUICK = (
    "training.steps=16",
    "model.pretraining=8",
    "model.repeats_from=12",
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
G. Dobbie, 2023, Table 1. Other pictures of the same factors, such as our own, have no number there."""

PAIRS_OF_THE_PAPER = {"cars3d": {"car": 30.0, "azimuth": 6.0, "elevation": 1.0}}
"""How often its pairs are of which factor (section 4.1; which is which, we take from how many values each
has). Ours are of all alike, so what is told right is also weighed as theirs are."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """CT-VAE on every data set at hand, and a network for telling actions alone; in a second stage
    variants on one of them, in a third trainings without rows of actions."""
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
            _trial(setting, first, *ONE_ACTION, note=SINGLE, stage=3)
            for setting in found.values()
            if _trial(setting, first).read_recipe().model["repeats"]
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
    """Rows of what needs no network, always the commonest answer; and accuracies weighed as the paper's
    pairs are."""
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
    """The mean accuracy of each factor's pairs, weighed as these are in the paper, where it says so."""
    shares = PAIRS_OF_THE_PAPER.get(result.trial.data)
    told = next((s for s in result.scores if s["name"] == "action-accuracy"), None)
    if shares is None or told is None or "confusion" not in told["details"]:
        return []
    right = total = 0.0
    for factor, share in shares.items():
        rows = [i for i, name in enumerate(told["details"]["names"]) if name[1:] == factor]
        pairs = [told["details"]["confusion"][i] for i in rows]
        right += (
            share * sum(row[i] for i, row in zip(rows, pairs, strict=True)) / sum(map(sum, pairs))
        )
        total += share
    return [{**told, "name": WEIGHED, "value": right / total, "noise_floor": None, "details": {}}]


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """Repeated interventions, what actions touch, and which are taken for which."""
    return [
        *repeated_figures(results, runs, folder),
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
        "Which action was it (test pairs)": [
            Column("action accuracy", "action-accuracy", form=".1%"),
            Column("factor accuracy", "factor-accuracy", form=".1%"),
            Column("action, of unseen pictures", "action-accuracy-unseen", form=".1%"),
            Column("factor, of unseen pictures", "factor-accuracy-unseen", form=".1%"),
            Column("action accuracy, weighed as the paper's pairs", WEIGHED, form=".1%"),
        ],
        "Images after an action (test pairs)": [
            Column("error", "intervention-error", form=".2g"),
            Column("over reconstruction", "intervention-ratio", form=".2f"),
            Column("share of doing nothing", "intervention-share", form=".1%"),
            Column("five actions over one", "repeated-ratio", form=".2f"),
            Column("others moved", "action-leak", form=".3f"),
            Column("moved, rebuilt only", "action-leak-floor", form=".3f"),
            Column("others moved after five", "action-leak-after-5", form=".3f"),
            Column("after five, rebuilt only", "action-leak-after-5-floor", form=".3f"),
            Column("own factor's error", "action-error", form=".3f"),
            Column("own, rebuilt only", "action-error-floor", form=".3f"),
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
