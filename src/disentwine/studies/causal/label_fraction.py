"""How the scores fall as labels go: CausalVAE/layered where only a share of the images carries any."""

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
from disentwine.studies.causal.causal_vae import DRAWINGS
from disentwine.studies.study import Profile, Study, result_rows
from disentwine.studies.trial import Trial, TrialResult

SHARES = {"100 %": 1.0, "50 %": 0.5, "10 %": 0.1, "1 %": 0.01}
SYSTEM = "causal-vae/layered"


def trials(profile: Profile, seeds: Sequence[int]) -> list[Trial]:
    """Pendulum with ever fewer labels; with all of them it is the trial of the study `causalvae`, which
    need not be trained where that study was made."""
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


def draw(results: Sequence[TrialResult], runs: Path, folder: Path) -> list[tuple[str, Path]]:
    """MIC and TIC over the share of images that carry labels."""
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


LABELS = Study(
    name="labels",
    about="CausalVAE/layered with labels for only some of the images",
    trials=trials,
    measure={
        "paper": causalvae.measure,
        "smoke": partial(causalvae.measure, limit=SMALL_SAMPLE, probe_steps=20),
    },
    published={},
    tables=causalvae.CAUSALVAE.tables,
    figures=draw,
    notes=(DRAWINGS,),
)
