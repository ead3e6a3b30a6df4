"""CausalWAE's claim: sharper images than CausalVAE's under the same interventions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from disentwine.core.score import Score
from disentwine.evaluation.evaluate import evaluate
from disentwine.evaluation.held_out import LIMIT
from disentwine.evaluation.protocols import SMALL_SAMPLE
from disentwine.runs.run import Run
from disentwine.studies.causal import causal_vae as causalvae
from disentwine.studies.causal.causal_vae import (
    DECAY,
    DRAWINGS,
    Row,
    per_concept,
    row_trial,
    without_arrays,
)
from disentwine.studies.figures import FigureFiles, graph_figures, intervention_figures
from disentwine.studies.study import Profile, Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

DATA = ("pendulum", "flow")
VAES = causalvae.ROWS[:2]
"""CausalVAE in layers and as its paper has it, which need not be trained where that study was made."""

ROWS = (
    *VAES,
    Row("causal-wae/layered", 1700, VAES[0].options, "MMD"),
    Row("causal-wae", VAES[1].steps, ("model.divergence=gan", *DECAY), "GAN"),
    Row("causal-wae", VAES[1].steps, DECAY, "MMD"),
    Row(
        "causal-wae", VAES[1].steps, ("model.decode_roots=false", *DECAY), "MMD, roots not decoded"
    ),
)


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """Every system on both data sets; the longest first, so that no core waits for it at the end."""
    small = profile == "smoke"
    size = f"data.size={32 if small else 64}"
    return [
        row_trial(row, data, seed, 20 if small else row.steps, size)
        for row in ROWS
        for data in DATA
        for seed in seeds
    ]


EVALUATED = (
    "reconstruction",
    "graph",
    "counterfactuals",
    "independence",
    "disentanglement",
    "mean-counterfactuals",
    "sharpness",
)


def measure(run: Run, *, limit: int = LIMIT) -> list[Score]:
    """Concepts, graph and reconstructions; the error and sharpness of counterfactuals; and the
    conditions of Wasserstein autoencoders."""
    found = evaluate(
        run.model,
        run.dataset,
        ["mic-tic"],
        evaluators=EVALUATED,
        seed=run.recipe.seed,
        limit=limit,
    )
    return [s if s.name.startswith("sharpness") else without_arrays(s) for s in found.scores]


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> FigureFiles:
    """Interventions of every system beside the truth, and the graph that was learnt."""
    return [
        *intervention_figures(results, runs, folder, notes=True),
        *graph_figures(results, runs, folder),
    ]


COLUMNS = [
    Column("reconstruction", "reconstruction-error", form=".2g"),
    Column("sharpness", "sharpness", form=".2f"),
    Column("of do-images", "sharpness-do", form=".2f"),
    Column("do-error, ratio", "counterfactual-ratio", form=".2f"),
    Column("share", "counterfactual-share", form=".0%"),
    Column("MIC %", "mic", form=".1%"),
    Column("TIC %", "tic", form=".1%"),
    Column("SHD", "shd", form=".1f"),
    Column("p of f(X, U) and U", "independence-p", form=".3f"),
    Column("HSIC", "independence-hsic", form=".1g"),
    Column("injectivity", "injectivity", form=".2g"),
]

CAUSALWAE = Study(
    name="causalwae",
    about="CausalWAE beside CausalVAE under the same interventions",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=SMALL_SAMPLE)},
    published={},
    tables={
        "Images, interventions and what the theory asks for (test split)": COLUMNS,
        **per_concept(
            "Error of do-images over that of reconstructions", "counterfactual-ratio", ".2f"
        ),
        **per_concept(
            "Error of do-images as a share of doing nothing", "counterfactual-share", ".1%"
        ),
    },
    figures=figures,
    notes=(DRAWINGS,),
)
