"""Ladder VAE study: log-likelihoods and active layers on MNIST and OMNIGLOT."""

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
from disentwine.studies.summary import Row, Summary, below_published, quote
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
"""KL warm-up as a share of the updates: 140 and 60 epochs; the paper has 200 of 2,000."""

AVERAGED_SHARE = 0.02
"""Share of the updates over which weights are averaged."""

RATES = ("training.learning_rate=.002", "training.final_learning_rate=.00002")
"""Learning rates of all systems: half of them were worse for the ladder VAE and the VAE on validation
images after 1,800 and 1,500 updates."""

WEIGHT_DECAY = {"ladder-vae": 0.6, "vae+bn+wu": 0.3, "vae+bn": 0.6, "vae": 0.1}
"""Weight decay on OMNIGLOT, which reduces overfitting: of the values tried (`benchmarks/decay.py`) the one
with the highest likelihood of validation images."""

STEPS = {"mnist": 100_000, "omniglot": 8_000}
"""With batches of 256: 100 and 8 minutes on one core. The paper has 2,000 epochs, 430,000 and 180,000."""

FINE_TUNED = 3_000
"""Updates on MNIST with ten samples of z per image; each takes as long as six or seven with one sample."""

COMPARED_STEPS, BETWEEN = 20_000, 50_000
"""Updates on MNIST of all four systems, of which only the ladder VAE is trained longer; and of a third
training of the ladder VAE, to show the effect of more updates."""

LONGER = 16_000
"""Updates on OMNIGLOT of the systems with warm-up, which are equally good after half as many."""

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
"""Further numbers in that paper: its fine-tuning with one importance weight, Y. Burda et al., 2016, and
D. Rezende and S. Mohamed, 2015."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """The ladder VAE on MNIST, and the table on OMNIGLOT, downscaled from the original drawings.

    Stages: 1, five layers: the ladder VAE on MNIST, then fine-tuned, all systems and seeds on
    OMNIGLOT; 2, all systems on MNIST with the same number of updates; 3, fewer layers on OMNIGLOT;
    4, twice the updates there, other seeds on MNIST, and a ladder VAE of medium training length.
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
            if (system, depth) != ("ladder-vae", 1)  # the same as vae+bn+wu
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
    """A system with `depth` layers on a data set; by default with `STEPS` and `WEIGHT_DECAY`."""
    weight_decay = WEIGHT_DECAY[system] if decay is None else decay
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
            *([f"training.weight_decay={weight_decay}"] if data == "omniglot" else []),
        ),
        note=sizes if steps is None else f"{sizes}, {steps:,} steps",
        stage=stage,
    )


def _fine_tuned(usual: Trial, *, steps: int = FINE_TUNED, saves: int = SAVES) -> Trial:
    """A usual training continued with the importance-weighted bound of ten samples."""
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
    """Figures 2 to 6 of the paper, and the likelihood by training length."""
    return [
        *learning_curve_figures(results, folder),
        *budget_figures(results, folder),
        *depth_figures(results, folder),
        *activity_figures(results, folder),
        *layer_figures(results, folder),
        *class_figures(results, runs, folder),
    ]


NOTES = (
    "*Log-likelihood*: the importance-weighted bound with 5,000 samples, estimated by the bound with 100 "
    "samples on all test images and the difference of the two on some of them; the standard error of this "
    "estimate is `error-of-correction` in the JSON file. Weights and learning rates were chosen on "
    "validation images; learning rates are the same for all systems.",
    "*Active*: a latent whose KL divergence from its prior, D_KL(q(z_ik) || p(z_ik given z_i+1)), is above "
    "0.01 nats on average over test images (in the maps: validation images), with one sample of all z for "
    "each image. Layer 1 is next to the image. Maps, curves and layers in the figures show the first seed; "
    "likelihoods by layers or by updates show the mean over seeds.",
)
DATASET_NOTES = {
    "mnist": f"*MNIST*: 55,000 training images, binarised at random in every batch; test images are "
    f"binarised once, the same for all. {STEPS['mnist']:,} updates with batches of 256, unless a row says "
    f"otherwise.",
    "omniglot": f"*OMNIGLOT*: downscaled from the published drawings, with a split of our own. Published "
    f"numbers are of the images of Burda et al.: our numbers compare with each other, and with the "
    f"published ones in their order only. {STEPS['omniglot']:,} updates, unless a row says otherwise, with a "
    f"weight decay chosen on validation images for each system.",
}
LAYER_NUMBERS = range(1, DEEPEST + 1)

INACTIVE_LAYER = 0.01
"""Nats below which a layer is reported as inactive in the summary."""


def summary(rows: Sequence[Row]) -> Summary:
    """Log-likelihoods of five layers on both data sets; layers without information."""
    sizes, metric = "-".join(map(str, LAYERS)), "log-likelihood"

    def value(system: str, data: str, note: str = sizes) -> str:
        return quote(rows, system, metric, ".2f", data=data, note=note)

    mnist = [
        f"ladder-vae {value('ladder-vae', 'mnist')}",
        f"fine-tuned {value('ladder-vae', 'mnist', f'{sizes}, fine-tuned, IW=10')}",
    ]
    shorter = [
        f"{system} {value(system, 'mnist', f'{sizes}, {COMPARED_STEPS:,} steps')}"
        for system in SYSTEMS
    ]
    omniglot = [f"{system} {value(system, 'omniglot')}" for system in SYSTEMS]
    inactive: dict[str, list[str]] = {}
    for row in rows:
        shown = (row["data"], row["note"]) == ("omniglot", sizes) and row["metric"].startswith(
            "kl_"
        )
        if shown and row["value"] < INACTIVE_LAYER:
            inactive.setdefault(row["system"], []).append(row["metric"].removeprefix("kl_"))
    layers = "; ".join(f"{system} {', '.join(of)}" for system, of in inactive.items())
    low = below_published(rows, metric, ".2f", data="omniglot")
    return Summary(
        "Ladder VAE and hierarchical VAEs with and without batch norm (bn) and warm-up (wu), five to one "
        "layers, by log-likelihood of test images in nats (C. Sonderby et al., 2016, tables 1 and 2).",
        f"Five layers on MNIST: {', '.join(mnist)}; after {COMPARED_STEPS:,} updates: "
        f"{', '.join(shorter)}. On OMNIGLOT: {', '.join(omniglot)}.",
        f"OMNIGLOT below the published number: {'all rows' if _all_below(rows) else low}; "
        f"images and number of updates differ. Layers with less than {INACTIVE_LAYER} nats on OMNIGLOT: "
        f"{layers or 'none'}.",
    )


def _all_below(rows: Sequence[Row]) -> bool:
    """Whether every OMNIGLOT row with a published number is below it."""
    pairs = [
        (row["value"], row["paper"])
        for row in rows
        if (row["data"], row["metric"]) == ("omniglot", "log-likelihood") and row["seeds"]
    ]
    return all(value < paper for value, paper in pairs if paper is not None)


LADDER = Study(
    name="ladder",
    about="Ladder VAE: log-likelihoods and active layers on MNIST and OMNIGLOT",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=60, samples=20, few=5)},
    published=PUBLISHED,
    published_only=PUBLISHED_ONLY,
    tables={
        "Log-likelihood (test split, nats)": [
            Column("log-likelihood, 5,000 samples", "log-likelihood", form=".2f"),
            Column("standard error over images", "standard-error", form=".2f"),
            Column("lower bound, 1 sample", "elbo", form=".2f"),
            Column("active latents", "active-units", form=".0f"),
            Column("seconds per 1,000 steps", "seconds-per-1000-steps", form=".1f"),
            Column("peak MB", "peak-megabytes", form=".0f"),
        ],
        "KL per layer (nats)": [Column(f"layer {i}", f"kl_{i}", form=".2f") for i in LAYER_NUMBERS],
        "Active latents per layer": [
            Column(f"layer {i}", f"active-units:{i}", form=".0f") for i in LAYER_NUMBERS
        ],
    },
    figures=figures,
    summary=summary,
    watch={"paper": watch, "smoke": partial(watch, images=20, samples=5)},
    notes=NOTES,
    dataset_notes=DATASET_NOTES,
    stages=3,
)
