"""The ladder VAE's tables: likelihoods on MNIST and OMNIGLOT, and which layers stay alive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from disentwine.studies.figures import FigureFiles
from disentwine.studies.ladder.figures import (
    activity_figures,
    budget_figures,
    class_figures,
    depth_figures,
    layer_figures,
    learning_curve_figures,
)
from disentwine.studies.ladder.measures import measure, watch
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

LAYERS, HIDDEN = (64, 32, 16, 8, 4), (512, 256, 128, 64, 32)
DEEPEST = len(LAYERS)
SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "ladder-vae": ("model.name=ladder-vae",),
    "vae+bn+wu": ("model.name=hierarchical-vae", "model.batch_norm=true"),
    "vae+bn": ("model.name=hierarchical-vae", "model.batch_norm=true"),
    "vae": ("model.name=hierarchical-vae",),
}
WARMED_UP = ("ladder-vae", "vae+bn+wu")
WARM_UP_SHARE = {"mnist": 0.3, "omniglot": 0.7, "shapes2d": 0.3}
"""Of the updates: 140 and 60 epochs, where the paper's 200 were a tenth of its 2,000."""

AVERAGED_SHARE = 0.02
"""Of the updates, over which weights are averaged."""

RATES = ("training.learning_rate=.002", "training.final_learning_rate=.00002")
"""Of all systems alike: half of it was worse for the ladder and for the plain VAE, by validation
images after 1,800 and 1,500 updates."""

SHRINKING = {"ladder-vae": 0.6, "vae+bn+wu": 0.3, "vae+bn": 0.6, "vae": 0.1}
"""Weight decay on OMNIGLOT: the more of it, the less far training images are ahead of validation images.
Of those tried (`benchmarks/decay.py`) the one after which the system finds validation images likeliest."""

STEPS = {"mnist": 100_000, "omniglot": 8_000}
"""At batches of 256: 100 and 8 minutes on one core. The paper's 2,000 epochs are 430,000 and 180,000."""

FINE_TUNED = 3_000
"""Updates on MNIST with ten draws of z an image, each as long as six or seven with one."""

COMPARED_STEPS, BETWEEN = 20_000, 50_000
"""On MNIST of all four systems, where only the ladder is trained for long; and of the ladder, between the
two, so that three whole trainings show what more updates bring."""

LONGER = 16_000
"""Updates on OMNIGLOT of those that are warmed up, which are as good as each other after half as many."""

SAVES = 20

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

PUBLISHED_ONLY: Published = {
    ("ladder-vae", "mnist", "log-likelihood", "64-32-16-8-4, fine-tuned"): -81.84,
    ("iwae", "mnist", "log-likelihood", "2 layers, IW=50"): -82.90,
    ("iwae", "mnist", "log-likelihood", "2 layers, IW=1"): -85.33,
    ("vae+nf", "mnist", "log-likelihood", "1 layer"): -85.10,
}
"""What that paper has beside: its own fine-tuning with one weight, Y. Burda et al., 2016, and
D. Rezende and S. Mohamed, 2015."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """The ladder on MNIST, and the table on OMNIGLOT, whose drawings are shrunk from the originals.

    Stages: 1, five layers: the ladder on MNIST for long, then fine-tuned, all systems and seeds on
    OMNIGLOT; 2, all systems on MNIST for as many updates each; 3, fewer layers on OMNIGLOT; 4, twice
    as many updates there, other seeds on MNIST, and the ladder between few updates and many.
    """
    if profile == "smoke":
        return [trial for seed in seeds for trial in _smoke(seed)]
    first, *others = seeds
    long = {
        seed: ladder_trial("ladder-vae", "mnist", seed, stage=4 if seed in others else 1)
        for seed in seeds
    }
    return [
        long[first],
        _fine_tuned(long[first]),
        *(ladder_trial(system, "omniglot", seed) for seed in seeds for system in SYSTEMS),
        *(ladder_trial(s, "mnist", first, steps=COMPARED_STEPS, stage=2) for s in SYSTEMS),
        ladder_trial("ladder-vae", "mnist", first, steps=BETWEEN, stage=4),
        *(
            ladder_trial(system, "omniglot", first, depth=depth, stage=3)
            for depth in range(DEEPEST - 1, 0, -1)
            for system in SYSTEMS
            if (system, depth) != ("ladder-vae", 1)  # which is the vae+bn+wu
        ),
        *(
            ladder_trial(system, "omniglot", seed, steps=LONGER, stage=4)
            for seed in seeds
            for system in WARMED_UP
        ),
        *(long[seed] for seed in others),
        *(
            ladder_trial(s, "mnist", o, steps=COMPARED_STEPS, stage=4)
            for o in others
            for s in SYSTEMS
        ),
    ]


def ladder_trial(
    system: str,
    data: str,
    seed: int,
    *,
    depth: int = DEEPEST,
    steps: int | None = None,
    stage: int = 1,
    decay: float | None = None,
) -> Trial:
    """A system with so many layers on one of the data sets; by default as long and with as much weight
    decay as `STEPS` and `SHRINKING` say."""
    shrinking = SHRINKING[system] if decay is None else decay
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
            *_model(system, data, LAYERS[:depth], HIDDEN[:depth], updates),
            *_training(updates, RATES),
            *([f"training.weight_decay={shrinking}"] if data == "omniglot" else []),
        ),
        note=sizes if steps is None else f"{sizes}, {steps:,} steps",
        stage=stage,
    )


def _fine_tuned(usual: Trial, *, steps: int = FINE_TUNED, saves: int = SAVES) -> Trial:
    """The bound of ten draws maximised from where the usual training ended."""
    rates = ("training.learning_rate=.0003", RATES[1])
    bound = ("model.importance_samples=10", "model.warm_up_steps=0")
    return Trial(
        usual.system,
        usual.data,
        usual.seed,
        usual.recipe,
        (*usual.overrides, *bound, *_training(steps, rates, saves=saves)),
        note=f"{usual.note}, fine-tuned, IW=10",
        stage=usual.stage,
        after=usual,
    )


def _model(
    system: str, data: str, layers: Sequence[int], hidden: Sequence[int], steps: int
) -> tuple[str, ...]:
    warm_up = int(WARM_UP_SHARE[data] * steps) if system in WARMED_UP else 0
    return (
        *SYSTEMS[system],
        f"model.layers={list(layers)}".replace(" ", ""),
        f"model.hidden={list(hidden)}".replace(" ", ""),
        f"model.warm_up_steps={warm_up}",
    )


def _training(steps: int, rates: Sequence[str], *, saves: int = SAVES) -> tuple[str, ...]:
    return (
        *rates,
        f"training.steps={steps}",
        f"training.weight_averaging={max(1, int(AVERAGED_SHARE * steps))}",
        f"training.save_every={steps // saves}",
    )


def _smoke(seed: int) -> list[Trial]:
    made = []
    for system, depth in (("ladder-vae", 2), ("vae+bn+wu", 2), ("vae", 2), ("vae", 1)):
        layers = (8, 4)[:depth]
        overrides = (
            "data.name=shapes2d",
            *_model(system, "shapes2d", layers, (32, 16)[:depth], 20),
            *_training(20, RATES, saves=2),
            "training.batch_size=32",
        )
        sizes = "-".join(map(str, layers))
        made.append(Trial(system, "shapes2d", seed, "ladder-vae-mnist", overrides, note=sizes))
    return [made[0], _fine_tuned(made[0], steps=5, saves=1), *made[1:]]


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Figures 2 to 6 of the paper, and what more updates bring."""
    return [
        *learning_curve_figures(results, folder),
        *budget_figures(results, folder),
        *depth_figures(results, folder),
        *activity_figures(results, folder),
        *layer_figures(results, folder),
        *class_figures(results, runs, folder),
    ]


NOTES = (
    "*Likelihood*: the importance-weighted bound of all test images, estimated by that with 100 samples "
    "and, on some of the images, what 5,000 add to it; the error that this leaves is "
    "`error-of-correction` in the JSON file. Weights were chosen on validation images, and so were "
    "learning rates, the same for all systems.",
    "*Active*: a unit whose divergence from its prior, D_KL(q(z_ik) || p(z_ik given z_i+1)), is more than "
    "0.01 nats on average over test images (in the maps: validation images), along one draw of all z of "
    "each image. Layer 1 is next to the image. Maps, curves and layers in the pictures are of the first "
    "seed, likelihoods by layers or by updates of the mean over seeds.",
)
DATASET_NOTES = {
    "mnist": f"*MNIST*: 55,000 images to learn from, drawn black and white anew in every batch; test images "
    f"are drawn once, the same for all. {STEPS['mnist']:,} updates at batches of 256, where a row does not "
    f"say otherwise.",
    "omniglot": f"*OMNIGLOT*: shrunk from the published drawings, with a split of our own; published "
    f"numbers are of the images of Burda et al., so that ours compare with each other, and with the "
    f"published ones only in their order. {STEPS['omniglot']:,} updates, where a row does not say "
    f"otherwise, with a weight decay that validation images chose for each system.",
}
LAYER_NUMBERS = range(1, DEEPEST + 1)

LADDER = Study(
    name="ladder",
    about="Ladder VAE, likelihoods on MNIST and OMNIGLOT, and the layers that stay alive",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=60, samples=20, few=5)},
    published=PUBLISHED,
    published_only=PUBLISHED_ONLY,
    tables={
        "Likelihood (test split, nats)": [
            Column("log-likelihood, 5,000 samples", "log-likelihood", form=".2f"),
            Column("its standard error over images", "standard-error", form=".2f"),
            Column("lower bound, 1 sample", "elbo", form=".2f"),
            Column("active units", "active-units", form=".0f"),
            Column("seconds per 1,000 steps", "seconds-per-1000-steps", form=".1f"),
            Column("peak MB", "peak-megabytes", form=".0f"),
        ],
        "What each layer carries (nats)": [
            Column(f"layer {i}", f"kl_{i}", form=".2f") for i in LAYER_NUMBERS
        ],
        "Active units of each layer": [
            Column(f"layer {i}", f"active-units:{i}", form=".0f") for i in LAYER_NUMBERS
        ],
    },
    figures=figures,
    watch={"paper": watch, "smoke": partial(watch, images=20, samples=5)},
    notes=NOTES,
    dataset_notes=DATASET_NOTES,
    stages=3,
)
