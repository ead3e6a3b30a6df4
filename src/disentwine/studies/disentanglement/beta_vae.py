"""The Z-diff table of the beta-VAE: nine representations of 2D shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from disentwine.evaluation.protocols import MANY_PAIRS
from disentwine.studies.disentanglement.figures import (
    bar_figures,
    learning_curve_figures,
    traversal_figures,
)
from disentwine.studies.disentanglement.measures import (
    MINUTES,
    best_setting,
    measure,
    watch,
)
from disentwine.studies.disentanglement.trials import (
    DATA,
    RESET_LATENTS,
    STEPS,
    annealed,
    available_data,
    smoke_trial,
    trained_longer,
    training,
    with_reset_latents,
)
from disentwine.studies.figures import FigureFiles
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

BASELINES = {"ground truth": "ground-truth", "pixels": "pixels", "pca": "pca", "ica": "ica"}
BETAS = (2, 4, 8, 16, 32, 60)
FIRST_BETAS, NEXT_BETAS = (4, 60), (16,)
"""Trained with every seed in the first and in the second stage; the others come later."""

ANNEALED_BETA, RESET_BETAS = 16, (4, 8)
"""What an annealed training ends with, and what is begun with it (see `annealed`, `with_reset_latents`)."""

ONE_BETA, TIMES_OF_ONE = 4, 2
"""Of what is begun with a single unit made anew: after the usual time its error was falling still."""

INFOGAN_STEPS = 8_000
STEPS_OF_DC_IGN = 4 * STEPS
SMALL_BATCH = ("training.learning_rate=.001", "training.final_learning_rate=.0001")
"""DC-IGN's batches are the images that differ in one factor alone: some ten, not 64."""

LONG_BETA = 60
TIMES = {"dc-ign": 15, "infogan": 10}
"""That these are trained_longer by, to take an hour and a half on one core."""

UNTRAINED = ("training.learning_rate=1.0e-12", "training.final_learning_rate=null")
"""One update that changes nothing."""

METRIC = "z-diff-no-shape"
TABLE = {
    ("ground truth", ""): 1.0,
    ("pixels", ""): 0.4575,
    ("pca", ""): 0.849,
    ("ica", ""): 0.4203,
    ("dc-ign", ""): 0.993,
    ("infogan", ""): 0.735,
    ("vae", "untrained"): 0.4414,
    ("vae", ""): 0.6158,
    ("beta-vae, best z-diff-no-shape", ""): 0.9923,
}
PUBLISHED: Published = {
    (system, data, METRIC) if "best" in system else (system, data, METRIC, note): value
    for (system, note), value in TABLE.items()
    for data in DATA
}
"""beta-VAE: Learning Basic Visual Concepts, I. Higgins et al., 2017, fig. 6: four factors."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """The table on the best source of the scene at hand; then long runs; then its other sources.

    Stages: 1, all rows that are cheap or most telling; 2, what is annealed and woken, the second beta and
    InfoGAN; 3, long runs; 4, all betas and twice as many dimensions for DC-IGN; 5, the main rows on
    other sources.
    """
    if profile == "smoke":
        return _smoke(seeds)
    main, *others = available_data()
    made = [*untrained_rows(main, seeds), *_rows(main, seeds, stage=1)]
    made += [trial for seed in seeds for trial in annealed_and_reset(main, seed, stage=2)]
    start, *_ = annealed_and_reset(main, seeds[0], stage=2)
    made.append(one_reset_latent(start, stage=2))
    made += [beta_vae(main, seed, beta, stage=2) for beta in NEXT_BETAS for seed in seeds]
    made += [training("infogan", main, s, steps=INFOGAN_STEPS, stage=2) for s in seeds]
    made += long_vaes(main, seeds[0], stage=3)
    made += [
        trained_longer(trial, times=TIMES[trial.system], stage=3)
        for trial in made
        if trial.system in TIMES and trial.seed == seeds[0]
    ]
    rest = [beta for beta in BETAS if beta not in FIRST_BETAS + NEXT_BETAS]
    made += [beta_vae(main, seed, beta, stage=4) for beta in rest for seed in seeds]
    twice = partial(training, "dc-ign", main, note="2 dimensions", steps=STEPS_OF_DC_IGN, stage=4)
    made += [twice(seed, *SMALL_BATCH, "model.dimensions=2") for seed in seeds]
    for data in others:
        made += [*untrained_rows(data, seeds, stage=5), *_rows(data, seeds[:1], stage=5)]
    return made


def long_vaes(data: str, seed: int, *, stage: int) -> list[Trial]:
    """Trainings that show what more time does."""
    usual = beta_vae(data, seed, LONG_BETA, stage=stage), training("vae", data, seed)
    return [trained_longer(trial, stage=stage) for trial in usual]


def _rows(data: str, seeds: Sequence[int], *, stage: int) -> list[Trial]:
    return [
        trial
        for seed in seeds
        for trial in (
            training("vae", data, seed, stage=stage),
            *(beta_vae(data, seed, beta, stage=stage) for beta in FIRST_BETAS),
            training("dc-ign", data, seed, *SMALL_BATCH, steps=STEPS_OF_DC_IGN, stage=stage),
        )
    ]


def untrained_rows(data: str, seeds: Sequence[int], *, stage: int = 1) -> list[Trial]:
    """Representations that nobody trains; those that are drawn at random with every seed."""
    recipe, options = "beta-vae-shapes2d", DATA[data]
    at_random = ("ica",)
    baselines = [
        Trial(system, data, seed, recipe, options, stage=stage, baseline=name)
        for system, name in BASELINES.items()
        for seed in (seeds if name in at_random else seeds[:1])
    ]
    vaes = [
        training("vae", data, seed, *UNTRAINED, note="untrained", stage=stage, steps=1)
        for seed in seeds
    ]
    return baselines + vaes


def beta_vae(data: str, seed: int, beta: float, *, stage: int, steps: int = STEPS) -> Trial:
    """One beta-VAE, as all studies name it."""
    return training(
        "beta-vae",
        data,
        seed,
        f"model.beta={beta}",
        note=f"beta {beta}",
        stage=stage,
        steps=steps,
    )


def annealed_and_reset(data: str, seed: int, *, stage: int) -> list[Trial]:
    """Place and size on axes of their own, first alone and then with other units for the rest."""
    start = annealed(beta_vae(data, seed, ANNEALED_BETA, stage=stage))
    plain = (beta_vae(data, seed, beta, stage=stage) for beta in RESET_BETAS)
    return [start, *(with_reset_latents(trial, after=start) for trial in plain)]


def one_reset_latent(start: Trial, *, stage: int) -> Trial:
    """The same with a single unit for the rest, which then has to say more."""
    plain = beta_vae(start.data, start.seed, ONE_BETA, stage=stage)
    return with_reset_latents(plain, after=start, times=TIMES_OF_ONE, latents=1)


def _smoke(seeds: Sequence[int]) -> list[Trial]:
    untrained = untrained_rows("shapes2d", seeds[:1])
    return [
        *(trial for trial in untrained if trial.system in ("ground truth", "pca", "vae")),
        *(smoke_trial("beta-vae", seed, "model.beta=4", note="beta 4") for seed in seeds),
        *(smoke_trial("dc-ign", seed) for seed in seeds),
        *smoke_reset_latents(seeds[0]),
    ]


def smoke_reset_latents(seed: int) -> list[Trial]:
    """A training that begins with another, of which units are made anew."""
    start = annealed(smoke_trial("beta-vae", seed, "model.beta=16", note="beta 16"))
    plain = smoke_trial("beta-vae", seed, "model.beta=4", note="beta 4")
    return [start, with_reset_latents(plain, after=start)]


def derived_rows(results: Sequence[TrialResult]) -> list[TrialResult]:
    """beta-VAE with the beta that did best on the validation split, without and with the shape."""
    four, five = (best_setting(results, "beta-vae", by=by) for by in ("z-diff-no-shape", "z-diff"))
    same = [o.trial.note for o in four] == [o.trial.note for o in five]
    best_reset = best_setting(results, f"beta-vae {RESET_LATENTS}", by="z-diff")
    return [*four, *([] if same else five), *best_reset]


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Scores beside the paper's, over the time of training, and what codes do to pictures."""
    return [
        *bar_figures([*results, *derived_rows(results)], PUBLISHED, folder),
        *learning_curve_figures(results, folder),
        *traversal_figures(results, runs, folder),
    ]


SCORE_COLUMNS = [
    Column("Z-diff %, 4 factors", "z-diff-no-shape", form=".2%"),
    Column("Z-diff %, 5 factors", "z-diff", form=".2%"),
    Column(f"5 factors, {MANY_PAIRS} pairs", f"z-diff-{MANY_PAIRS}-pairs", form=".2%"),
    Column("4 factors, by SVM", "z-diff-no-shape-svm", form=".2%"),
    Column("5 factors, by SVM", "z-diff-svm", form=".2%"),
    Column("SAP", "sap", form=".4f"),
    Column("SAP, all units", "sap-all-units", form=".4f"),
    Column("SAP without orientation", "sap-no-orientation", form=".4f"),
    Column("MIG", "mig", form=".4f"),
    Column("reconstruction error", "reconstruction-error", form=".4f"),
    Column("active units", "active-units", form=".1f"),
]
COST_COLUMNS = [
    Column("seconds per 1,000 steps", "seconds-per-1000-steps", form=".1f"),
    Column("peak MB", "peak-megabytes", form=".0f"),
    *(
        Column(f"{heading}, {minutes} min", f"{metric}-after-{minutes}-minutes", form=form)
        for heading, metric, form in (
            ("Z-diff of 5", "z-diff", ".1%"),
            ("SAP", "sap", ".3f"),
            ("error", "reconstruction-error", ".4f"),
        )
        for minutes in MINUTES
    ),
]

SYSTEMS_OF_OURS = (
    "Rows called *annealed* begin with a weight of 60 on the divergence, which falls. Those called *woken* "
    "begin where an annealed beta-VAE of the same seed ended, with the units it does not use made anew, all "
    "or as many as are named: its minutes come on top of theirs. Neither is of the papers, whose numbers "
    "stand beside them for comparison."
)

NOT_ALIKE = (
    "Not all are trained alike: a training is 10,000 updates of 64 images; of DIP-VAE-II and "
    "beta-TCVAE, and of DIP-VAE-I with a lambda above 20, 3,000 of 256, since few images tell little of "
    "what they ask for; of DC-IGN 40,000, of InfoGAN 8,000; of DIP-VAE-I, where it is woken, and of a single "
    "unit that is, 20,000. "
    "Networks of InfoGAN and FactorVAE are not normed, and learn at a constant rate. Rows called *long* "
    "have 90 minutes of one core; scores after so many minutes are of validation images, and "
    "of trainings that took as long, or nearly (eight tenths of it)."
)

HOW_TO_READ = (
    "Z-diff over four factors leaves out the shape, as the beta-VAE's paper does; a code of place and size "
    "alone can have all of it: where none of these is shared, it must be the turn. Over five factors the "
    "best rows take shape and turn for each other, less often so with points of more pairs. SAP is of active "
    "units. Rows of a *best* setting are of trainings with every seed, chosen on validation images. "
    "[The guide](../docs/disentangling.md) tells more."
)

SMOKE_POINTS = (300, 150)
SMOKE_MEASURE = partial(measure, limit=400, points=SMOKE_POINTS)
SMOKE_WATCH = partial(watch, limit=200, points=SMOKE_POINTS)

BETAVAE = Study(
    name="betavae",
    about="beta-VAE, the Z-diff table: nine representations of 2D shapes",
    trials=trials,
    measure={"paper": measure, "smoke": SMOKE_MEASURE},
    published=PUBLISHED,
    tables={
        "What codes know of factors (test split)": SCORE_COLUMNS,
        "What it costs, on one core": COST_COLUMNS,
    },
    figures=figures,
    watch={"paper": watch, "smoke": SMOKE_WATCH},
    derived_rows=derived_rows,
    notes=(SYSTEMS_OF_OURS, NOT_ALIKE, HOW_TO_READ),
    stages=2,
    runs="disentangling",
)
