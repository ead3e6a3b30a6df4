"""Few-labels study: causal-vae/layered with labels for some of the images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from disentwine import figures
from disentwine.evaluation.protocols import SMALL_SAMPLE
from disentwine.figures.bars import grouped_bars
from disentwine.studies.causal import causal_vae as causalvae
from disentwine.studies.causal.causal_vae import RENDERING
from disentwine.studies.study import Profile, Study, result_rows
from disentwine.studies.summary import Row, Summary, quote
from disentwine.studies.trial import Trial, TrialResult

SHARES = {"100 %": 1.0, "50 %": 0.5, "10 %": 0.1, "1 %": 0.01}
SYSTEM = "causal-vae/layered"


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """Pendulum with fewer and fewer labels; with all labels it is the trial of the study `causalvae`."""
    whole = [
        t
        for t in causalvae.trials(profile, seeds)
        if (t.system, t.data, t.note) == (SYSTEM, "pendulum", "")
    ]
    return [
        replace(t, overrides=(*t.overrides, *labelled), note=note)
        for note, share in SHARES.items()
        for labelled in [() if share == 1 else (f"data.labelled_fraction={share}",)]
        for t in whole
    ]


def figures_of(results: Sequence[TrialResult], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """MIC and TIC over the share of labelled images."""
    rows = result_rows(results, {})
    metrics = ("mic", "tic")

    def table(field: str) -> np.ndarray:
        found = {
            (row["note"], row["metric"]): row[field] for row in sorted(rows, key=lambda r: r["n"])
        }
        return np.array([[found.get((s, m)) for m in metrics] for s in SHARES], dtype=float)

    figure = grouped_bars(
        table("value"),
        spreads=table("spread"),
        published=np.full((len(SHARES), len(metrics)), np.nan),
        groups=[f"{share} labelled" for share in SHARES],
        bars=[metric.upper() for metric in metrics],
        title="pendulum, test split",
    )
    path = figures.save_figure(figure, folder / "mic-tic.png")
    return [("MIC and TIC over the share of labelled images", path)]


def summary(rows: Sequence[Row]) -> Summary:
    """TIC and counterfactual error by the share of labelled images."""

    def each(metric: str, form: str) -> str:
        quotes = (
            f"{quote(rows, SYSTEM, metric, form, data='pendulum', note=note)} with {note} labelled"
            for note in SHARES
        )
        return ", ".join(quotes)

    hardest = "counterfactual-share:shadow_length"
    return Summary(
        "causal-vae/layered trained with labels for 100, 50, 10 and 1 % of the images, by MIC, TIC and "
        "counterfactual errors. There are no published numbers.",
        f"TIC {each('tic', '.1%')}. MIC {each('mic', '.1%')}.",
        "Counterfactual MSE of shadow length relative to no intervention (above 100% is worse than the "
        f"unchanged image): {each(hardest, '.1%')}.",
    )


LABELS = Study(
    name="labels",
    about="causal-vae/layered with labels for some of the images",
    trials=trials,
    measure={
        "paper": causalvae.measure,
        "smoke": partial(causalvae.measure, limit=SMALL_SAMPLE, probe_steps=20),
    },
    published={},
    tables=causalvae.CAUSALVAE.tables,
    figures=figures_of,
    summary=summary,
    notes=(RENDERING,),
)
