"""Columns and notes of the disentanglement studies; disentanglement_study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from disentwine.evaluation.protocols import MANY_PAIRS
from disentwine.studies.disentanglement.measures import MINUTES, measure, watch
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.summary import Row, Summary
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

SCORE_COLUMNS = [
    Column("Z-diff, 4 factors", "z-diff-no-shape", form=".2%"),
    Column("Z-diff, 5 factors", "z-diff", form=".2%"),
    Column(f"5 factors, {MANY_PAIRS} pairs", f"z-diff-{MANY_PAIRS}-pairs", form=".2%"),
    Column("4 factors, SVM", "z-diff-no-shape-svm", form=".2%"),
    Column("5 factors, SVM", "z-diff-svm", form=".2%"),
    Column("SAP", "sap", form=".4f"),
    Column("SAP, all latents", "sap-all-units", form=".4f"),
    Column("SAP without orientation", "sap-no-orientation", form=".4f"),
    Column("MIG", "mig", form=".4f"),
    Column("reconstruction error", "reconstruction-error", form=".4f"),
    Column("active latents", "active-units", form=".1f"),
]
COST_COLUMNS = [
    Column("seconds per 1,000 steps", "seconds-per-1000-steps", form=".1f"),
    Column("peak MB", "peak-megabytes", form=".0f"),
    *(
        Column(f"{heading}, {minutes} min", f"{metric}-after-{minutes}-minutes", form=form)
        for heading, metric, form in (
            ("Z-diff, 5 factors", "z-diff", ".1%"),
            ("SAP", "sap", ".3f"),
            ("error", "reconstruction-error", ".4f"),
        )
        for minutes in MINUTES
    ),
]
TABLES = {
    "Disentanglement scores (test split)": SCORE_COLUMNS,
    "Training cost (one core)": COST_COLUMNS,
}

OWN_SYSTEMS = (
    "*Annealed* rows start with a KL weight of 60 that decreases (KL annealing). Rows with *reset latents* "
    "start from an annealed beta-VAE of the same seed with its inactive latents re-initialised, all of them "
    "or as many as the name says; their minutes come on top of the annealed training's. Neither is in the "
    "papers; published numbers beside them are for comparison."
)

TRAINING = (
    "*Training* differs between systems. The default is 10,000 updates with batches of 64. DIP-VAE-II, "
    "beta-TCVAE, and DIP-VAE-I with lambda above 20 have 3,000 updates with batches of 256, since their "
    "penalties are noisy on small batches. DC-IGN has 40,000 updates, InfoGAN 8,000, DIP-VAE-I with reset "
    "latents and beta-VAE with one reset latent 20,000. InfoGAN and FactorVAE use networks without "
    "normalisation and a constant learning rate. *Long* rows are trained for 90 minutes on one core. "
    "Scores after some minutes are of validation images, for trainings that took at least 80 % of that "
    "time."
)

SCORES = (
    "*Scores*: Z-diff of four factors leaves out the shape, as in the beta-VAE paper. Latents of position "
    "and size alone can reach 100%: if a pair shares none of these, it must share the orientation. With five "
    "factors the best rows confuse shape and orientation, less often with averages over more pairs. SAP "
    "is computed on active latents. *Best* rows show the setting that was best on validation images, "
    "among settings trained with every seed."
)

SMOKE_POINTS = (300, 150)


def disentanglement_study(
    name: str,
    about: str,
    *,
    trials: Callable[[Profile, Sequence[int]], list[Trial]],
    published: Published,
    figures: Callable[[Sequence[TrialResult], Path, Path], list[tuple[str, Path]]],
    derived_rows: Callable[[Sequence[TrialResult]], list[TrialResult]],
    summary: Callable[[Sequence[Row]], Summary],
    tables: Mapping[str, Sequence[Column]] = TABLES,
) -> Study:
    """A study that shares runs, measures, columns and notes with the other disentanglement studies.

    Arguments:
        name, about, trials, published, figures, derived_rows, summary, tables: as in `Study`.
    """
    return Study(
        name=name,
        about=about,
        trials=trials,
        measure={"paper": measure, "smoke": partial(measure, limit=400, points=SMOKE_POINTS)},
        published=published,
        tables=tables,
        figures=figures,
        watch={"paper": watch, "smoke": partial(watch, limit=200, points=SMOKE_POINTS)},
        derived_rows=derived_rows,
        summary=summary,
        notes=(OWN_SYSTEMS, TRAINING, SCORES),
        stages=2,
        runs="disentangling",
    )
