"""What stays of trials when their runs are gone."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from disentwine.core.score import Score
from disentwine.errors import StudyError
from disentwine.studies import STUDIES
from disentwine.studies import figures as study_figures
from disentwine.studies import scheduler as trials
from disentwine.studies.causal.graph_learning import graph_learning_figures
from disentwine.studies.ct_vae import figures as action_figures
from disentwine.studies.disentanglement.figures import traversal_figures
from disentwine.studies.figures import draw_or_keep
from disentwine.studies.ladder.figures import class_figures
from disentwine.studies.runner import run_study
from disentwine.studies.scheduler import SCORES
from disentwine.studies.study import Study
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

QUICK = ("data.size=32", "model.name=vae", "training.steps=2", "training.batch_size=4")


def trial(system="vae", **more):
    return Trial(system, "pendulum", 0, "demo", QUICK, **more)


def draw(results, runs, folder):
    """Something that needs weights, and something that needs courses only."""
    first, path = results[0], folder / "weights.png"

    def draw_weights(loaded):
        path.write_bytes(loaded["first"].status["state"].encode())
        return [("Weights", path)]

    (folder / "steps.txt").write_text(str([record["step"] for record in first.learning_curve]))
    return draw_or_keep([("Weights", path)], {"first": first}, runs, draw_weights)


@pytest.fixture
def measured():
    """Systems that were measured, in that order."""
    return []


@pytest.fixture
def study(in_this_process, measured):
    def measure(run):
        measured.append(run.path.name)
        details = {"exactly": 1 / 3, "of all pixels": np.zeros((4096, 5))}
        return [Score("steps", run.status["step"], n=1, details=details)]

    def make(*made):
        return Study(
            name="tiny",
            about="a study of nothing",
            trials=lambda profile, seeds: list(made),
            measure={"paper": measure},
            published={},
            tables={"Steps": [Column("steps", "steps")]},
            figures=draw,
            watch={"paper": lambda model, dataset: {"third": 1 / 3}},
        )

    return make


def rows(folder):
    return json.loads((folder / "tiny.json").read_bytes())["rows"]


def record_of(made, folder):
    return folder / "tiny" / "trials" / f"{made.folder(folder).name}.json"


def test_every_finished_trial_has_a_record(study, tmp_path):
    run_study(study(trial(), trial("other")), out=tmp_path)
    assert len(list((tmp_path / "tiny" / "trials").iterdir())) == 2
    record = json.loads(record_of(trial(), tmp_path).read_bytes())
    kept = json.loads((trial().folder(tmp_path / "runs" / "tiny") / SCORES).read_bytes())
    del kept["scores"][0]["details"]["of all pixels"]
    assert {key: record[key] for key in kept} == kept
    assert record["scores"][0]["details"] == {"exactly": 1 / 3}
    assert [entry["scores"] for entry in record["learning_curve"]] == [{"third": 0.33333}] * 2
    assert (record["seed"], record["recipe"]["training"]["steps"]) == (0, 2)


def lose_runs(folder, monkeypatch):
    shutil.rmtree(folder / "runs")
    monkeypatch.setattr(trials, "train_recipe", lambda *a, **k: pytest.fail("trained again"))


@pytest.mark.parametrize("train", [True, False])
def test_results_are_the_same_where_runs_are_gone(study, tmp_path, monkeypatch, train):
    tiny = study(trial(), trial("other"))
    written = run_study(tiny, out=tmp_path)
    before, page = rows(tmp_path), written.page.read_text()
    records = {path: path.read_bytes() for path in (tmp_path / "tiny" / "trials").iterdir()}
    lose_runs(tmp_path, monkeypatch)
    (tmp_path / "tiny" / "steps.txt").unlink()
    run_study(tiny, out=tmp_path, train=train)
    assert rows(tmp_path) == before
    assert {path: path.read_bytes() for path in records} == records
    assert "](tiny/weights.png)" in page
    assert written.page.read_text() == page
    assert (tmp_path / "tiny" / "steps.txt").read_text() == "[0, 2]"


def test_a_picture_of_weights_that_was_never_drawn_is_left_out(study, tmp_path, monkeypatch):
    run_study(study(trial()), out=tmp_path)
    lose_runs(tmp_path, monkeypatch)
    (tmp_path / "tiny" / "weights.png").unlink()
    written = run_study(study(trial()), out=tmp_path)
    assert "weights.png" not in written.page.read_text()


def test_without_record_and_run_it_is_trained_again(study, tmp_path, measured):
    run_study(study(trial()), out=tmp_path)
    shutil.rmtree(tmp_path / "runs")
    record_of(trial(), tmp_path).unlink()
    run_study(study(trial()), out=tmp_path)
    assert len(measured) == 2
    assert record_of(trial(), tmp_path).is_file()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "has no keys"),
        ('{"scores": []}', "has no minutes, learning_curve"),
        (
            '{"scores": [{"name": "mic"}], "minutes": 1, "learning_curve": []}',
            "not all of its scores",
        ),
        ('{"scores": 3, "minutes": 1, "learning_curve": []}', "not all of its scores"),
        ('{"scores": [], "minutes": null, "learning_curve": []}', "are not numbers"),
        (
            '{"scores": [{"name": "mic", "value": null, "n": 1, "noise_floor": null, "details": {}}], '
            '"minutes": 1, "learning_curve": []}',
            "are not numbers",
        ),
        ('{"scores": [], "minutes": 1, "learning_curve": 3}', "learning_curve is not a list"),
    ],
)
@pytest.mark.parametrize("train", [True, False])
def test_a_damaged_or_foreign_record_is_told(study, tmp_path, content, reason, train):
    path = record_of(trial(), tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(StudyError, match=reason) as raised:
        run_study(study(trial()), out=tmp_path, train=train)
    assert str(path) in str(raised.value)
    assert "delete it to run the trial again" in str(raised.value)


def test_a_record_of_another_default_is_refused_by_the_name_of_the_key(
    study, tmp_path, monkeypatch
):
    """The digest in its name does not see a default that has changed."""
    run_study(study(trial()), out=tmp_path)
    lose_runs(tmp_path, monkeypatch)
    path = record_of(trial(), tmp_path)
    record = json.loads(path.read_bytes())
    del record["recipe"]["training"]["clip_norm"]  # an option that came later is no change
    path.write_text(json.dumps(record))
    run_study(study(trial()), out=tmp_path)
    record["recipe"]["training"]["log_every"] = 7
    path.write_text(json.dumps(record))
    with pytest.raises(StudyError, match=r"training\.log_every was 7, is 50"):
        run_study(study(trial()), out=tmp_path)


def test_weights_that_others_begin_with_are_made_again_and_not_measured(study, tmp_path, measured):
    first = trial("first")
    tuned = trial("tuned", after=first)
    last = trial("last", after=tuned)
    run_study(study(first, tuned), out=tmp_path)
    record = record_of(first, tmp_path).read_bytes()
    shutil.rmtree(tmp_path / "runs")
    measured.clear()
    run_study(study(last, tuned, first), out=tmp_path)
    runs = tmp_path / "runs" / "tiny"
    assert measured == [last.folder(runs).name]
    assert all(made.finished_run(runs) is not None for made in (first, tuned, last))
    assert not (first.folder(runs) / SCORES).exists()
    assert record_of(first, tmp_path).read_bytes() == record
    assert {row["system"] for row in rows(tmp_path)} == {"first", "tuned", "last"}


def test_weights_that_nobody_begins_with_are_not_made_again(study, tmp_path, monkeypatch):
    first = trial("first")
    both = study(first, trial("tuned", after=first))
    run_study(both, out=tmp_path)
    lose_runs(tmp_path, monkeypatch)
    run_study(both, out=tmp_path)
    assert len(rows(tmp_path)) == 2


@pytest.mark.parametrize(
    ("draw", "files"),
    [
        (study_figures.intervention_figures, ["interventions-pendulum.png"]),
        (study_figures.graph_figures, ["graph-pendulum.png"]),
        (partial(graph_learning_figures, system="vae"), ["adjacency-labels-pendulum.png"]),
        (action_figures.rollout_figures, ["repeated-pendulum.png"]),
        (action_figures.graph_figures, ["graphs-pendulum.png"]),
        (
            lambda o, runs, folder: action_figures.confusion_figures(o, folder),
            ["confusion-pendulum.png"],
        ),
        (class_figures, ["classes-pendulum.png"]),
        (traversal_figures, ["traversals-pendulum.png", "traversals-pendulum-vae.gif"]),
    ],
)
def test_pictures_of_models_that_are_gone_are_kept(draw, files, tmp_path):
    common = {"value": 0.5, "n": 1, "noise_floor": None, "details": {}}
    scores = tuple({"name": name, **common} for name in ("sap", "action-accuracy"))
    results = [
        TrialResult(trial(), scores, 1.0),
        TrialResult(trial("other"), (scores[1], {**scores[0], "value": 0.1}), 1.0),
    ]
    assert draw(results, tmp_path / "runs", tmp_path) == []
    for name in files:
        (tmp_path / name).touch()
    found = draw(results, tmp_path / "runs", tmp_path)
    assert [path.name for _, path in found] == files


@pytest.mark.skipif("DISENTWINE_DATA" not in os.environ, reason="needs all published data")
def test_every_committed_record_is_claimed_by_a_trial():
    results = Path(__file__).parents[2] / "results"
    claimed = {
        results / (study.runs or study.name) / "trials" / f"{trial.folder(results).name}.json"
        for study in STUDIES.values()
        for trial in study.trials("paper", (0, 1, 2))
    }
    records = set(results.glob("*/trials/*.json"))
    assert len(records) > 200
    assert records <= claimed
