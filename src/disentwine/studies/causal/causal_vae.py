"""CausalVAE study: Table 1, counterfactual errors, notes of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml

from disentwine.core.dataset import Simulates
from disentwine.core.score import Score
from disentwine.evaluation.evaluate import evaluate
from disentwine.evaluation.held_out import LIMIT
from disentwine.evaluation.probes import CONCEPT_PROBE_STEPS, ConceptProbe, cached_probe
from disentwine.evaluation.protocols import SMALL_SAMPLE
from disentwine.runs.recipe import Recipe
from disentwine.runs.run import Run
from disentwine.studies.causal.graph_learning import graph_learning_figures
from disentwine.studies.figures import (
    effect_figures,
    graph_figures,
    intervention_figures,
    score_figures,
)
from disentwine.studies.study import Profile, Published, Study
from disentwine.studies.summary import Row, Summary, below_published, quote, row_name
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

FLOW_SNAPPED = "flow-snapped"

NOTES = (
    "*Measures*: the counterfactual MSE relative to the reconstruction says what an intervention adds to "
    "the error, not how good an image is: a model with poor reconstructions has a low ratio. Read it with "
    "the MSE relative to no intervention and with the MSE itself. The *concept probe* is a network trained "
    "on real images that predicts the concepts; its errors are in standard deviations of the labels. "
    "Figures show the first seed.",
    "*Label std 0.1*: the prior of each latent is centred on its label with standard deviation 0.1. The "
    "paper's prior has standard deviation 1, so that supervising the latents costs a few nats where the "
    "reconstruction costs hundreds. *Abduction by least squares*: the weights of the layered model, with "
    "the inferred concepts refined until the reconstruction error is smallest. *Graphs* are learnt from "
    "the labels by `disentwine.causal.discover` before training, in all systems that learn a graph; "
    "figures show the graph of the paper's own pre-training.",
    "*Updates*: 600 for the unsupervised rows, 1,000 to 2,200 for the others, so that all rows together "
    "take less than an hour on two cores. *causal-gan* is given the graph and still generates speckled "
    "images after its 1,500 updates. The unsupervised rows are above the published numbers and plain "
    "causal-vae is below; the paper does not state the training and the number of scored images in enough "
    "detail to say why.",
)

DATASET_NOTES = {
    FLOW_SNAPPED: "*flow-snapped*: the scenes of flow with water and hole snapped to whole pixels "
    "(`data.pixel_snapping=true`), as in the authors' images. The water surface then does not show its "
    "height between two pixels (`benchmarks/support.py` measures the cost for an observer of the surface "
    "alone; the jet shows more), and nine hole positions hardly determine where the gap in the wall jumps "
    "by a pixel.",
    "pendulum-authors": "*pendulum-authors*: the authors' own images, one seed, fewer updates; without a "
    "simulator.",
    "flow-authors": "*flow-authors*: the authors' own images, one seed, fewer updates; without a simulator. "
    "Its labels are truncated to whole numbers, which degrades the learnt graph.",
}

RENDERING = (
    "*Rendering*: images show every length exactly, also between two pixels (`data.pixel_snapping=false`). "
    "Pages without this line show images snapped to whole pixels (`data.pixel_snapping=true`), with layered "
    "models of an older version: their numbers do not compare with these."
)
"""For studies whose committed results are older than the defaults of today."""


@dataclass(frozen=True)
class Setting:
    """System, number of updates and options of a row of the table."""

    system: str
    steps: int
    options: tuple[str, ...] = ()
    note: str = ""


DECAY = ("training.learning_rate=.003", "training.final_learning_rate=.0001")

LABEL_STD = ("model.label_std=.1", *DECAY)

LABEL_STD_NOTE = "label std 0.1"
"""The paper's prior N(u, 1) supervises the latents by a few nats; the reconstruction has hundreds."""

ROWS = (
    Setting(
        "causal-vae/layered",
        2200,
        ("training.learning_rate=.003", "training.final_learning_rate=.00002"),
    ),
    Setting("causal-vae", 2000, LABEL_STD, LABEL_STD_NOTE),
    Setting("causal-vae", 1000),
    Setting("condition-vae", 1800, LABEL_STD, LABEL_STD_NOTE),
    Setting("condition-vae", 1000),
    Setting("causal-gan", 1500, note="graph given"),
    Setting(
        "ladder-vae",
        600,
        (
            "model.layers=[8,4]",
            "model.hidden=[256,64]",
            "model.network=compact",
            "model.warm_up_steps=200",
        ),
    ),
    Setting("causal-vae-unsup", 600),
    Setting("beta-vae", 600, ("model.beta=4",)),
)
"""With these numbers of updates all rows together take less than an hour on two cores."""

SMOKE_MEASURE = {"ladder-vae": ("model.warm_up_steps=10",)}
"""Options of a smoke test: a warm-up that ends before the training does."""

LEAST_SQUARES = (
    "model.abduction=least-squares",
    "training.steps=1",
    "training.learning_rate=1.0e-12",
    "training.final_learning_rate=null",
)

LEAST_SQUARES_NOTE = "abduction by least squares"
"""Weights of the first row, with one update that changes nothing; only the abduction differs."""

RERENDERED = {FLOW_SNAPPED: ("data.name=flow", "data.pixel_snapping=true")}
"""The same scenes, with water and hole snapped to whole pixels."""

PUBLISHED_IMAGES = {
    "pendulum-authors": (),
    "flow-authors": (),
    "celeba-smile": ("data.limit=20000",),
    "celeba-beard": ("data.limit=20000",),
}

ON_PUBLISHED_IMAGES = (replace(ROWS[0], steps=500), replace(ROWS[1], steps=1000))
"""On images from files, if they are available; one seed, since the authors' images are larger."""

CONCEPTS = {
    "pendulum": ("pendulum_angle", "light_angle", "shadow_length", "shadow_position"),
    "flow": ("ball_size", "water_height", "hole", "flow"),
}

PUBLISHED: Published = {
    (system, data, metric): value
    for system, data, mic, tic in (
        ("causal-vae", "pendulum", 0.951, 0.816),
        ("condition-vae", "pendulum", 0.938, 0.805),
        ("beta-vae", "pendulum", 0.226, 0.125),
        ("causal-vae-unsup", "pendulum", 0.212, 0.120),
        ("ladder-vae", "pendulum", 0.224, 0.128),
        ("causal-vae", "flow", 0.721, 0.564),
        ("condition-vae", "flow", 0.755, 0.565),
        ("beta-vae", "flow", 0.236, 0.125),
        ("causal-vae-unsup", "flow", 0.228, 0.124),
        ("ladder-vae", "flow", 0.343, 0.244),
        ("causal-vae", "celeba-smile", 0.837, 0.716),
        ("condition-vae", "celeba-smile", 0.788, 0.661),
        ("causal-vae", "celeba-beard", 0.923, 0.833),
        ("condition-vae", "celeba-beard", 0.898, 0.787),
    )
    for data in (data, f"{data}-authors")
    for metric, value in (("mic", mic), ("tic", tic))
}
"""CausalVAE, M. Yang et al., 2021, Table 1."""


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """Every system on every data set; the first also on snapped images, two on published images."""
    small = profile == "smoke"
    size = f"data.size={32 if small else 64}"
    quick = [
        replace(row, options=(*row.options, *SMOKE_MEASURE.get(row.system, ()))) for row in ROWS
    ]
    made = [
        trial
        for row in (quick if small else ROWS)
        for data in ("pendulum", "flow")
        for seed in seeds
        for trial in _with_least_squares(
            row_trial(row, data, seed, 20 if small else row.steps, size)
        )
    ]
    if not small:
        made += [
            trial
            for seed in seeds
            for trial in _with_least_squares(
                row_trial(ROWS[0], FLOW_SNAPPED, seed, ROWS[0].steps, size)
            )
        ]
        made += [
            trial
            for row in ON_PUBLISHED_IMAGES
            for data, options in PUBLISHED_IMAGES.items()
            if (trial := row_trial(row, data, seeds[0], row.steps, *options)).has_data()
        ]
    return made


def _with_least_squares(trial: Trial) -> list[Trial]:
    """A trial; for the layered model also the one with abduction by least squares."""
    if trial.system != ROWS[0].system:
        return [trial]
    overrides = (*trial.overrides, *LEAST_SQUARES)
    return [trial, replace(trial, overrides=overrides, note=LEAST_SQUARES_NOTE, after=trial)]


def row_trial(row: Setting, data: str, seed: int, steps: int, *more: str) -> Trial:
    """The trial of a setting: the recipe of its family for the data set, with the setting's options."""
    family = row.system.split("/")[0]
    family = family if family in ("causal-gan", "causal-wae") else "causal-vae"
    overrides = (
        *RERENDERED.get(data, (f"data.name={data}",)),
        *more,
        f"model.name={row.system}",
        f"training.steps={steps}",
        *row.options,
    )
    base = f"{family}-{'flow' if data.startswith('flow') else 'pendulum'}"
    return Trial(row.system, data, seed, base, overrides, row.note)


EVALUATED = ("reconstruction", "graph", "counterfactuals", "disentanglement")


def measure(run: Run, *, limit: int = LIMIT, probe_steps: int = CONCEPT_PROBE_STEPS) -> list[Score]:
    """MIC and TIC on all test images and on as few as the paper's, the graph, and counterfactuals."""
    effects = ("effects",) if isinstance(run.dataset, Simulates) else ()
    make_probe = partial(probe_of, run.recipe, probe_steps)
    found = evaluate(
        run.model,
        run.dataset,
        ["mic-tic"],
        evaluators=(*EVALUATED, "counterfactual-errors", "small-samples", *effects),
        seed=run.recipe.seed,
        limit=limit,
        options={"effects": {"make_probe": make_probe}},
    )
    kept = ("effect-", "off-target-")  # figures are drawn of their matrices
    return [s if s.name.startswith(kept) else without_arrays(s) for s in found.scores]


def probe_of(recipe: Recipe, steps: int) -> ConceptProbe:
    """The concept probe of a recipe's data; it learns from every label, whatever the model has."""
    data = {key: value for key, value in recipe.data.items() if key != "labelled_fraction"}
    return cached_probe(
        yaml.safe_dump(data), lambda: Recipe(data, {}, {}).build_dataset(), steps=steps
    )


def without_arrays(score: Score) -> Score:
    """The score without array-valued details."""
    details = {name: value for name, value in score.details.items() if np.ndim(value) == 0}
    return Score(score.name, score.value, score.n, score.noise_floor, details)


def figures(results: Sequence[TrialResult], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """Scores with the published ones; interventions of every system with the ground truth."""
    return [
        *score_figures(results, PUBLISHED, ("mic", "tic"), folder),
        *intervention_figures(results, runs, folder, notes=True),
        *effect_figures(results, folder),
        *graph_figures(results, runs, folder),
        *graph_learning_figures(results, runs, folder, system="causal-vae"),
    ]


CONCEPT_COLUMNS = [
    Column("MIC %", "mic", form=".1%"),
    Column("TIC %", "tic", form=".1%"),
    Column("MIC, n=100", "mic", n=SMALL_SAMPLE, form=".1%"),
    Column("TIC, n=100", "tic", n=SMALL_SAMPLE, form=".1%"),
    Column("SHD", "shd", form=".1f"),
    Column("reconstruction", "reconstruction-error", form=".2g"),
]


def per_concept(title: str, metric: str, form: str) -> dict[str, list[Column]]:
    """A table of one metric with a column for each concept."""
    names = [name for concepts in CONCEPTS.values() for name in concepts]
    return {
        title: [Column(name.replace("_", " "), f"{metric}:{name}", form=form) for name in names]
    }


def summary(rows: Sequence[Row]) -> Summary:
    """MIC of the systems with published numbers, and counterfactual errors of the layered model."""

    def mics(data: str) -> str:
        names = (("causal-vae", LABEL_STD_NOTE), ("causal-vae", ""), ("beta-vae", ""))
        found = [
            f"{row_name({'system': system, 'note': note})} "
            f"{quote(rows, system, 'mic', '.1%', data=data, note=note)}"
            for system, note in names
        ]
        return f"{data}: {', '.join(found)}"

    def errors(system: str, note: str, data: str) -> str:
        metric = "counterfactual-share"
        shares = [
            quote(rows, system, f"{metric}:{c}", ".1%", data=data, note=note)
            for c in CONCEPTS[data]
        ]
        named = zip(CONCEPTS[data], shares, strict=True)
        return ", ".join(f"{concept.replace('_', ' ')} {share}" for concept, share in named)

    low = {data: below_published(rows, "mic", ".1%", data=data) for data in CONCEPTS}
    return Summary(
        "causal-vae (also layered), condition-vae, causal-gan, ladder-vae and beta-vae by MIC and TIC of "
        "latents with concepts (CausalVAE, M. Yang et al., 2021, Table 1) and by the error of their "
        "counterfactuals against the simulator.",
        f"MIC on {mics('pendulum')}; {mics('flow')}. Counterfactual MSE of causal-vae/layered relative to "
        f"no intervention: {errors('causal-vae/layered', '', 'pendulum')}; "
        f"{errors('causal-vae/layered', '', 'flow')}.",
        f"MIC below the published number: pendulum: {low['pendulum']}; flow: {low['flow']}. A share above "
        f"100% is worse than no intervention, as for causal-vae ({LABEL_STD_NOTE}): "
        f"{errors('causal-vae', LABEL_STD_NOTE, 'pendulum')}.",
    )


CAUSALVAE = Study(
    name="causalvae",
    about="CausalVAE: Table 1 and counterfactuals against the simulator",
    trials=trials,
    measure={"paper": measure, "smoke": partial(measure, limit=SMALL_SAMPLE, probe_steps=20)},
    published=PUBLISHED,
    tables={
        "Concept scores (test split)": CONCEPT_COLUMNS,
        **per_concept(
            "Counterfactual MSE relative to the reconstruction", "counterfactual-ratio", ".2f"
        ),
        **per_concept(
            "Counterfactual MSE relative to no intervention", "counterfactual-share", ".1%"
        ),
        **per_concept("Counterfactual MSE", "counterfactual-error", ".1e"),
        **per_concept(
            "Error of the concept probe on counterfactuals (label standard deviations)",
            "effect-error",
            ".3f",
        ),
    },
    figures=figures,
    summary=summary,
    notes=NOTES,
    dataset_notes=DATASET_NOTES,
)
