"""CausalWAE study: sharpness and counterfactual errors compared with CausalVAE."""

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
    RENDERING,
    Setting,
    per_concept,
    row_trial,
    without_arrays,
)
from disentwine.studies.figures import FigureFiles, graph_figures, intervention_figures
from disentwine.studies.study import Profile, Study
from disentwine.studies.summary import Row, Summary, quote, row_name
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

DATA = ("pendulum", "flow")
VAES = causalvae.ROWS[:2]
"""Layered and plain CausalVAE; runs of the study `causalvae` are reused."""

ROWS = (
    *VAES,
    Setting("causal-wae/layered", 1700, VAES[0].options, "MMD"),
    Setting("causal-wae", VAES[1].steps, ("model.divergence=gan", *DECAY), "GAN"),
    Setting("causal-wae", VAES[1].steps, DECAY, "MMD"),
    Setting(
        "causal-wae", VAES[1].steps, ("model.decode_roots=false", *DECAY), "MMD, roots not decoded"
    ),
)


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """Every system on both data sets, the longest first."""
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
    """Interventions of every system with the ground truth, and the learnt graph."""
    return [
        *intervention_figures(results, runs, folder, notes=True),
        *graph_figures(results, runs, folder),
    ]


COLUMNS = [
    Column("reconstruction", "reconstruction-error", form=".2g"),
    Column("sharpness", "sharpness", form=".2f"),
    Column("sharpness, counterfactuals", "sharpness-do", form=".2f"),
    Column("counterfactual MSE / reconstruction", "counterfactual-ratio", form=".2f"),
    Column("counterfactual MSE / no intervention", "counterfactual-share", form=".0%"),
    Column("MIC", "mic", form=".1%"),
    Column("TIC", "tic", form=".1%"),
    Column("SHD", "shd", form=".1f"),
    Column("p-value, f(X, U) independent of U", "independence-p", form=".3f"),
    Column("HSIC", "independence-hsic", form=".1g"),
    Column("injectivity", "injectivity", form=".2g"),
]


def summary(rows: Sequence[Row]) -> Summary:
    """Sharpness and counterfactual error of every system."""

    def each(metric: str, form: str, data: str) -> str:
        found = [row for row in rows if (row["metric"], row["data"]) == (metric, data)]
        quotes = (
            f"{row_name(row)} {quote([row], row['system'], metric, form, data=data)}"
            for row in found
        )
        return f"{data}: {', '.join(quotes)}"

    share = "counterfactual-share"
    worse = [
        f"{row_name(row)} on {row['data']}"
        for row in rows
        if row["metric"] == share and row["value"] > 1
    ]
    tested = [row for row in rows if row["metric"] == "independence-p"]
    rejected = dict.fromkeys(row_name(row) for row in tested if row["value"] < 0.05)
    return Summary(
        "Wasserstein and variational autoencoders with a causal layer, plain and layered, by the sharpness "
        "of counterfactuals and their error against the simulator. The paper has no comparable numbers.",
        "Sharpness of counterfactuals relative to the true images: "
        f"{each('sharpness-do', '.2f', 'pendulum')}; {each('sharpness-do', '.2f', 'flow')}. "
        "Counterfactual MSE relative to no intervention: "
        f"{each(share, '.0%', 'pendulum')}; {each(share, '.0%', 'flow')}.",
        f"Counterfactuals are worse than the unchanged image (above 100%) for {', '.join(worse) or 'none'}. "
        f"Independence of f(X, U) and U, a condition of the theory, is rejected (p < 0.05) for "
        f"{', '.join(rejected) or 'none'}.",
    )


CAUSALWAE = Study(
    name="causalwae",
    about="CausalWAE and CausalVAE under the same interventions",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=SMALL_SAMPLE)},
    published={},
    tables={
        "Images, counterfactuals and conditions of the theory (test split)": COLUMNS,
        **per_concept(
            "Counterfactual MSE relative to the reconstruction", "counterfactual-ratio", ".2f"
        ),
        **per_concept(
            "Counterfactual MSE relative to no intervention", "counterfactual-share", ".1%"
        ),
    },
    figures=figures,
    summary=summary,
    notes=(RENDERING,),
)
