"""What the study of CT-VAE measures and draws, on a training that takes seconds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from disentwine.studies.ct_vae import figures as action_figures
from disentwine.studies.ct_vae.measures import SIAMESE, measure
from disentwine.studies.ct_vae.study import (
    CTVAE,
    PUBLISHED,
    SETTINGS,
    SINGLE,
    VARIANTS,
    WEIGHED,
    derived_rows,
    figures,
)
from disentwine.studies.scheduler import make_trial
from disentwine.studies.study import result_rows
from disentwine.studies.trial import Trial, TrialResult

TINY = (
    "data.hues=2",
    "data.scales=3",
    "data.orientations=4",
    "model.pretrain_steps=1",
    "model.autoencoder.channels=8",
    "model.transition.node_dim=8",
    "model.autoencoder.codebook_size=8",
    "model.autoencoder.num_codebooks=2",
    "training.steps=2",
    "training.batch_size=4",
)


def score(name: str, value: float, floor: float | None = None) -> dict[str, object]:
    return {"name": name, "value": value, "n": 10, "noise_floor": floor, "details": {}}


def test_the_baselines_are_rows_of_their_own() -> None:
    trials = CTVAE.trials("paper", (0,))
    trial = Trial("ct-vae", "cars3d", 0, "ct-vae-cars3d")
    alone = replace(trial, system=SIAMESE, baseline=SIAMESE)
    assert {t.data for t in trials if t.baseline} == {t.data for t in trials if not t.baseline}
    scores = score("action-accuracy", 0.8, 0.2), score("factor-accuracy", 0.9, 0.4)
    told = (score("action-accuracy", 0.95, 0.2),)
    results = [TrialResult(trial, scores, 1.0), TrialResult(alone, told, 0.25)]
    rows = result_rows([*results, *derived_rows(results)], PUBLISHED)
    found = {(row["system"], row["metric"]): row for row in rows}
    assert found["siamese network", "action-accuracy"]["value"] == 0.95
    assert found["commonest action", "factor-accuracy"]["value"] == 0.4
    assert found["ct-vae", "action-accuracy"]["paper"] == 0.71
    row = found["siamese network", "action-accuracy"]
    assert (row["paper"], row["minutes"]) == (None, 0.25)
    assert row["recipe"] == "none: siamese network of the data of ct-vae-cars3d"
    row = found["commonest action", "action-accuracy"]
    assert (row["minutes"], row["recipe"]) == (
        0,
        "none: commonest action of the data of ct-vae-cars3d",
    )


def test_accuracies_are_weighed_as_the_papers_pairs_are() -> None:
    names = ["+car", "-car", "+azimuth", "-azimuth", "+elevation", "-elevation"]
    confusion = [[0] * 6 for _ in names]
    confusion[0][0], confusion[0][1] = 3, 1  # of eight pairs with the car, six are correct
    confusion[1][1], confusion[1][2] = 3, 1
    for i in range(2, 6):
        confusion[i][i] = 5
    told = score("action-accuracy", 26 / 28, 0.2) | {
        "details": {"names": names, "confusion": confusion}
    }
    trial = Trial("ct-vae", "cars3d", 0, "ct-vae-cars3d")
    rows = result_rows(derived_rows([TrialResult(trial, (told,), 1.0)]), {})
    (found,) = [row for row in rows if row["metric"] == WEIGHED]
    assert found["system"] == "ct-vae"
    assert found["value"] == pytest.approx((30 * 6 / 8 + 6 + 1) / 37)


def test_published_numbers_stand_beside_the_papers_own_pictures_only() -> None:
    published = {data for _, data, _ in PUBLISHED}
    assert published == {"cars3d", "shapes3d-authors", "sprites-lpc", "sprites-reed", "dsprites"}
    for data, recipe, overrides in SETTINGS:
        read = Trial("ct-vae", data, 0, recipe, overrides).read_recipe()
        variant = read.data.get("variant", "full")
        assert data == read.data["name"] + ("" if variant == "full" else f"-{variant}")


def test_variants_are_compared_with_one_seed() -> None:
    trials = CTVAE.trials("paper", (3, 4, 5))
    noted = [trial for trial in trials if trial.note]
    assert {trial.note for trial in noted} == {*VARIANTS, SINGLE}
    assert {trial.seed for trial in noted} == {3}
    plain = {(trial.data, trial.seed) for trial in trials if not trial.note}
    assert 2 * len(plain) == len(trials) - len(noted) >= 6


def test_the_papers_table_comes_first() -> None:
    for trial in CTVAE.trials("paper", (0, 1)):
        assert trial.stage == {"": 1, SINGLE: 3}.get(trial.note, 2)


def test_pictures_are_of_the_first_seed_that_can_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[int] = []
    monkeypatch.setattr(
        action_figures,
        "_draw_rollouts",
        lambda figure_file, runs: loaded.extend(runs.values()) or [figure_file],
    )
    there = {("cars3d", 1): 1, ("cars3d", 2): 2}
    monkeypatch.setattr(Trial, "finished_run", lambda self, _: there.get((self.data, self.seed)))
    results = []
    for seed in (0, 1, 2):
        told = score("action-accuracy", 1.0, 0.2) | {"details": {}}
        if seed > 0:
            told["details"] = {"names": ["+x", "-x"], "confusion": [[seed, 0], [0, 1]]}
        results.append(TrialResult(Trial("ct-vae", "cars3d", seed, "ct-vae-cars3d"), (told,), 1.0))
    ((_, path),) = action_figures.rollout_figures(results, tmp_path, tmp_path)
    assert path.name == "repeated-cars3d.png"
    assert loaded == [1]
    counted: list[Any] = []
    matrix = action_figures.confusion_matrix
    monkeypatch.setattr(
        action_figures,
        "confusion_matrix",
        lambda *given: counted.append(given[0]) or matrix(*given),
    )
    ((_, path),) = action_figures.confusion_figures(results, tmp_path)
    assert path.is_file()
    assert counted == [[[1, 0], [0, 1]]]


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["known", "latent"])
def test_everything_is_measured_and_drawn(tmp_path: Path, labels: str) -> None:
    unnamed = ("model.contrast=null", "model.rollout=null")
    trial = Trial(
        "ct-vae",
        "shapes3d",
        0,
        "ct-vae-shapes3d",
        (*TINY, f"model.action_labels={labels}", *unnamed),
    )
    quick = partial(measure, most=12, probe_steps=1, action_probe_steps=1)
    result = make_trial(trial, tmp_path, quick)
    alone = make_trial(replace(trial, system=SIAMESE, baseline=SIAMESE), tmp_path, quick)
    told = {"action-accuracy", "factor-accuracy"}
    assert {s["name"] for s in alone.scores} == told | {f"{name}-unseen" for name in told}
    names = {found["name"] for found in result.scores}
    columns = {column.metric for table in CTVAE.tables.values() for column in table}
    # A probe of one update predicts no factor, so there is no score of off-target change.
    told = {name for name in columns if not name.startswith(("off-target-change", "action-error"))}
    assert told - {WEIGHED} <= names, "derived from the record, of Cars3D alone"
    assert not {"off-target-change", "action-error"} & names
    written = figures([result, alone], tmp_path, tmp_path)
    assert len(written) == 3
    assert all(path.stat().st_size > 1000 for _, path in written)
