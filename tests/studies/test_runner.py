"""Stages, what is written when, and what a training costs."""

import json
import shutil
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from disentwine.core.score import Score
from disentwine.errors import Interrupted, StorageError, StudyError, UsageError
from disentwine.runs.run import load_run
from disentwine.studies import STUDIES
from disentwine.studies import scheduler as trials
from disentwine.studies.learning_curves import (
    LEARNING_CURVE,
    RecordLearningCurve,
    read_learning_curve,
)
from disentwine.studies.records import read_trial
from disentwine.studies.runner import run_study
from disentwine.studies.scheduler import SCORES, make_trial, run_trials
from disentwine.studies.study import Study, result_rows
from disentwine.studies.summary import Summary, quote
from disentwine.studies.tables import Column
from disentwine.studies.trial import Baseline, Trial, TrialResult

QUICK = ("data.size=32", "model.name=vae", "training.steps=2", "training.batch_size=4")

# Spawned processes know modules by the paths that they inherit, not by where pytest found them.
sys.path.append(str(Path(__file__).parent))
measures = import_module("measures_for_processes")


def trial(system="vae", *, seed=0, stage=1, overrides=QUICK, **more):
    return Trial(system, "pendulum", seed, "demo", overrides, stage=stage, **more)


def measure(measured):
    if isinstance(measured, Baseline):
        return [Score("images", len(measured.dataset), n=1)]
    return [Score("steps", measured.status["step"], n=1)]


def stopped_at_three(run):
    if run.status["step"] == 3:
        raise KeyboardInterrupt
    return measure(run)


def watch(model, dataset):
    return {"training": model.training}


@pytest.fixture
def study(in_this_process):
    def make(*made, stages=None, dataset_notes=()):
        return Study(
            name="tiny",
            about="a study of nothing",
            trials=lambda profile, seeds: list(made),
            measure={"paper": measure},
            published={("vae", "pendulum", "steps", "short"): 3.0},
            tables={"Steps": [Column("steps", "steps")]},
            figures=lambda results, runs, folder: [],
            watch={"paper": watch},
            stages=stages,
            dataset_notes=dict(dataset_notes),
        )

    return make


def systems(folder):
    return [row["system"] for row in json.loads((folder / "tiny.json").read_bytes())["rows"]]


def test_what_is_complete_is_written_when_a_training_fails(study, tmp_path):
    broken = trial("broken", overrides=("data.size=33",))
    with pytest.raises(StudyError, match="1 of 2"):
        run_study(study(trial(), broken), out=tmp_path)
    assert systems(tmp_path) == ["vae"]
    page = (tmp_path / "tiny.md").read_text()
    assert "1 of 2 trainings are finished; missing: broken" in page


def test_a_study_that_is_stopped_tells_how_far_it_is(study, tmp_path):
    second = trial("second", overrides=(*QUICK, "training.steps=3"))
    tiny = replace(study(trial(), second), measure={"paper": stopped_at_three})
    with pytest.raises(Interrupted, match="stopped: 1 of 2 trainings are finished; run") as caught:
        run_study(tiny, out=tmp_path)
    assert caught.value.exit_code == 130
    assert systems(tmp_path) == ["vae"]


def test_results_of_more_trainings_are_not_replaced_by_those_of_fewer(study, tmp_path, capsys):
    both = trial(), trial("other", overrides=(*QUICK, "training.steps=3"))
    before = run_study(study(*both), out=tmp_path).results.read_bytes()
    written = run_study(study(both[0]), out=tmp_path)
    told = capsys.readouterr().err
    assert "has results of 2 trainings (disentwine study tiny --profile paper --seeds" in told
    assert "and is not replaced" in told
    assert written.results == tmp_path / "runs" / "results" / "tiny.json"
    assert systems(written.results.parent) == ["vae"]
    assert (tmp_path / "tiny.json").read_bytes() == before


def test_results_of_other_seeds_are_not_replaced(study, tmp_path, capsys):
    before = run_study(study(trial()), out=tmp_path).results.read_bytes()
    written = run_study(study(trial(seed=1)), out=tmp_path)
    assert "and is not replaced" in capsys.readouterr().err
    assert written.results == tmp_path / "runs" / "results" / "tiny.json"
    assert (tmp_path / "tiny.json").read_bytes() == before


def test_a_seed_counts_once(study, tmp_path):
    for seeds in ((0, 0), ()):
        with pytest.raises(UsageError, match="give each once"):
            run_study(study(trial()), out=tmp_path, seeds=seeds)


def test_folders_may_have_any_name(study, tmp_path):
    first = trial("first")
    tuned = trial("tuned", after=first)
    folder = tmp_path / "out #1: [x]"
    run_study(study(first, tuned), out=folder)
    start = load_run(tuned.folder(folder / "runs" / "tiny")).recipe.training["init_from"]
    assert start == str(first.folder(folder / "runs" / "tiny"))


def test_a_page_tells_of_the_data_sets_it_has(study, tmp_path):
    notes = {"pendulum": "It swings.", "flow": "It falls."}
    page = run_study(study(trial(), dataset_notes=notes), out=tmp_path).page.read_text()
    assert "It swings." in page
    assert "It falls." not in page


def test_later_stages_are_made_when_asked_for(study, tmp_path):
    later = trial("later", stage=2, overrides=(*QUICK, "training.steps=3"))
    tiny = study(later, trial(), stages=1)
    run_study(tiny, out=tmp_path)
    assert systems(tmp_path) == ["vae"]
    run_study(tiny, out=tmp_path, stages=2)
    assert systems(tmp_path) == ["vae", "later"]


def test_results_of_earlier_sessions_are_written_without_training(study, tmp_path):
    tiny = study(trial(), trial("other", stage=2))
    with pytest.raises(StudyError, match="no training whose data are available"):
        run_study(tiny, out=tmp_path, train=False)
    make_trial(trial(), tmp_path / "runs" / "tiny", measure)
    written = run_study(tiny, out=tmp_path, train=False)
    assert systems(tmp_path) == ["vae"]
    assert json.loads(written.results.read_bytes())["trials"] == {"finished": 1, "planned": 2}


def test_what_is_finished_is_read_without_a_process(study, tmp_path, monkeypatch):
    run_study(study(trial()), out=tmp_path)
    monkeypatch.setattr(trials, "make_trial", None)
    run_study(study(trial()), out=tmp_path)
    with pytest.raises(StudyError, match="1 of 2"):
        run_study(study(trial(), trial("new")), out=tmp_path)


def test_a_trial_that_goes_on_from_another_is_the_next_once_that_is_made(study, tmp_path):
    first = trial("first", overrides=(*QUICK, "training.steps=4"))
    tuned, last = trial("tuned", after=first), trial("last")
    ended = []
    tiny = study(tuned, first, last)
    run_trials(
        tiny.trials("paper", [0]),
        tmp_path,
        measure=measure,
        jobs=1,
        label="tiny",
        on_trial=lambda trial: ended.append(trial.system),
    )
    assert ended == ["first", "tuned", "last"]
    run = load_run(tuned.folder(tmp_path))
    assert run.recipe.training["init_from"] == str(first.folder(tmp_path))
    assert tuned.command.endswith(f"training.init_from={first.folder(tmp_path).name}")
    assert tuned.folder(tmp_path).name != trial("tuned").folder(tmp_path).name


def test_a_trial_whose_start_failed_fails_with_the_reason(study, tmp_path):
    broken = trial("broken", overrides=("data.size=33",))
    with pytest.raises(StudyError, match=r"2 of 3(.|\n)*not a run folder"):
        run_study(study(broken, trial("tuned", after=broken), trial()), out=tmp_path)
    assert systems(tmp_path) == ["vae"]


def test_a_worker_that_is_killed_fails_its_trials_and_hangs_nothing(tmp_path):
    made = [trial(), trial("other")]
    with pytest.raises(StudyError, match="2 of 2"):
        run_trials(
            made, tmp_path, measure=measures.kill_worker, jobs=1, label="tiny", progress=False
        )


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_worker_that_is_killed_fails_no_other_trial(tmp_path, jobs):
    """The long one is in the middle of its training when the pool breaks, and goes on from there."""
    long = trial("long", overrides=(*QUICK, "training.steps=400", "training.save_every=1000"))
    killer, other = (trial(f"{n} steps", overrides=(*QUICK, f"training.steps={n}")) for n in (3, 2))
    ended = []
    with pytest.raises(StudyError, match=r"1 of 3(.|\n)*3-steps-0-\w+: .*killed"):
        run_trials(
            [long, killer, other],
            tmp_path,
            measure=measures.kill_worker_after_three_steps,
            jobs=jobs,
            label="tiny",
            on_trial=lambda trial: ended.append(trial.system),
            progress=False,
        )
    assert sorted(ended) == ["2 steps", "3 steps", "long"]
    assert load_run(long.folder(tmp_path)).status["step"] == 400
    assert read_trial(other, tmp_path) is not None
    assert read_trial(killer, tmp_path) is None


def test_numbers_of_others_are_rows_marked_as_published(study, tmp_path):
    known = {("iwae", "pendulum", "steps", "2 layers"): 7.0, ("iwae", "flow", "steps", ""): 8.0}
    tiny = replace(study(trial()), published_only=known, notes=["A note."])
    written = run_study(tiny, out=tmp_path)
    (row,) = [r for r in json.loads(written.results.read_bytes())["rows"] if r["system"] == "iwae"]
    assert (row["value"], row["paper"], row["data"]) == (None, 7.0, "pendulum")
    page = written.page.read_text()
    assert "| iwae (2 layers, published only) | [7] |" in page
    assert "\n\nA note.\n\n" in page


def test_a_page_begins_with_a_summary_of_its_rows(study, tmp_path):
    def summary(rows):
        steps = quote(rows, "vae", "steps", ".0f", data="pendulum")
        return Summary("Nothing.", f"{steps} steps.", "Everything.")

    page = run_study(replace(study(trial()), summary=summary), out=tmp_path).page.read_text()
    title, _, *lines = page.splitlines()[:7]
    assert title == "# a study of nothing"
    assert lines[:4] == [
        "- **Compared**: Nothing.",
        "- **Data**: pendulum; seed 0.",
        "- **Results**: 2 steps.",
        "- **Falls short**: Everything.",
    ]
    assert lines[4].startswith(
        "- **Reproduce**: `disentwine study tiny --profile paper --seeds 0 1 2`"
    )


def test_without_records_a_page_is_written_again_from_its_rows(study, tmp_path):
    tiny = replace(study(trial()), figures=one_figure)
    before = run_study(tiny, out=tmp_path)
    rows, page = before.results.read_bytes(), before.page.read_text()
    for folder in ("runs", "tiny/trials"):
        shutil.rmtree(tmp_path / folder)
    after = run_study(replace(tiny, about="another title"), out=tmp_path, train=False)
    assert after.results.read_bytes() == rows
    assert after.page.read_text() == page.replace("a study of nothing", "another title")
    assert "![A figure](tiny/figure.png)" in page


def one_figure(results, runs, folder):
    path = folder / "figure.png"
    path.write_bytes(b"")
    return [("A figure", path)]


def test_a_baseline_is_measured_without_training(tmp_path):
    pixels = trial("pixels", baseline="pixels")
    found = make_trial(pixels, tmp_path, measure)
    assert found.scores[0]["value"] == 7308
    assert [path.name for path in pixels.folder(tmp_path).iterdir()] == [SCORES]


def test_a_published_number_of_a_note_is_not_that_of_another():
    score = {"name": "sap", "value": 0.5, "n": 1, "noise_floor": None, "details": {}}
    results = [TrialResult(trial(note=note), (score,), minutes=1.0) for note in ("a", "b")]
    published = {("vae", "pendulum", "sap", "a"): 0.4}
    assert [row["paper"] for row in result_rows(results, published)] == [0.4, None]


def test_the_course_of_a_training_is_kept(tmp_path):
    made = trial(overrides=(*QUICK, "training.save_every=1"))
    make_trial(made, tmp_path, measure, watch)
    learning_curve = read_learning_curve(made.folder(tmp_path))
    assert [record["step"] for record in learning_curve] == [0, 1, 2]
    seconds = [record["seconds"] for record in learning_curve]
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]
    assert not any(record["scores"]["training"] for record in learning_curve)


def test_a_resumed_training_counts_on_from_where_it_was(tmp_path):
    first, second = (
        RecordLearningCurve(tmp_path, watch=lambda model, dataset, name=name: {"session": name})
        for name in (1, 2)
    )
    first.on_begin(None, None)
    for step in (0, 10, 20):
        first.on_save(None, step)
    known = json.loads((tmp_path / LEARNING_CURVE).read_bytes())
    known[1]["seconds"] = 100.0  # the checkpoint of step 20 was lost
    (tmp_path / LEARNING_CURVE).write_text(json.dumps(known))
    second.on_begin(None, None)
    second.on_save(None, 15)
    learning_curve = read_learning_curve(tmp_path)
    assert [(r["step"], r["scores"]["session"]) for r in learning_curve] == [
        (0, 1),
        (10, 1),
        (15, 2),
    ]
    assert 100.0 <= learning_curve[-1]["seconds"] < 160.0


def test_a_damaged_course_is_named(tmp_path):
    (tmp_path / LEARNING_CURVE).write_text('[{"step": 0, "seco')
    with pytest.raises(StudyError, match=rf"{LEARNING_CURVE} is no learning curve.* delete it"):
        read_learning_curve(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["betavae", "causalvae", "causalwae", "ctvae", "dipvae", "ladder"])
def test_a_smoke_test_ends_with_a_page(name, tmp_path):
    written = run_study(STUDIES[name], profile="smoke", seeds=[0], out=tmp_path)
    page = written.page.read_text()
    assert page.count("![") >= 3
    rows = json.loads(written.results.read_bytes())["rows"]
    assert all(row["value"] is None or np.isfinite(row["value"]) for row in rows)
    shutil.rmtree(tmp_path / "runs")
    run_study(STUDIES[name], profile="smoke", seeds=[0], out=tmp_path, train=False)
    assert written.page.read_text() == page
    assert json.loads(written.results.read_bytes())["rows"] == rows


def test_what_another_study_trained_is_only_measured(tmp_path, monkeypatch):
    """The same recipe under another name; a copy of the run, without what was measured of it."""
    make_trial(trial(note="first"), tmp_path / "one", measure)
    monkeypatch.setattr(trials, "train_recipe", lambda *a, **k: pytest.fail("trained again"))
    again = trial(note="second")
    made = make_trial(again, tmp_path / "two", lambda run: [Score("other", 1.0, n=1)])
    assert [score["name"] for score in made.scores] == ["other"]
    assert (again.folder(tmp_path / "two") / "recipe.yaml").is_file()
    assert (
        json.loads((trial(note="first").folder(tmp_path / "one") / SCORES).read_bytes())["scores"][
            0
        ]["name"]
        == "steps"
    )


def hide(run):
    run.rename(run.with_name(f".{run.name}"))


def damage(run):
    for weights in run.glob("checkpoints/*/weights.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-1])


@pytest.mark.parametrize("spoil", [hide, damage])
def test_only_what_another_study_has_whole_is_copied(tmp_path, spoil, capsys):
    make_trial(trial(note="first"), tmp_path / "one", measure)
    spoil(trial(note="first").folder(tmp_path / "one"))
    again = trial(note="second")
    folder = again.folder(tmp_path / "two")
    cut_off = folder.with_name(f".{folder.name}")
    cut_off.mkdir(parents=True)
    made = make_trial(again, tmp_path / "two", measure)
    assert made.scores[0]["value"] == 2
    assert load_run(folder).model is not None
    assert not cut_off.exists()


def test_a_copy_that_fails_leaves_nothing(tmp_path, monkeypatch):
    make_trial(trial(note="first"), tmp_path / "one", measure)
    again = trial(note="second")

    def full(other, half, ignore):
        half.mkdir(parents=True)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(StorageError, match="the disk is full"):
        make_trial(again, tmp_path / "two", measure)
    assert list((tmp_path / "two").iterdir()) == []
