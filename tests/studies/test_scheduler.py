"""Trainings side by side, and the tables made of them."""

import json
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from disentwine.errors import StudyError
from disentwine.runs.recipe import read_recipe
from disentwine.studies import STUDIES
from disentwine.studies.scheduler import SCORES, make_trial, run_trials
from disentwine.studies.study import Study, result_rows
from disentwine.studies.tables import Column, Table, study_tables, to_markdown
from disentwine.studies.trial import Trial, TrialResult

QUICK = ("data.size=32", "model.name=vae", "training.steps=2", "training.batch_size=4")


# Spawned processes know modules by the paths that they inherit, not by where pytest found them.
sys.path.append(str(Path(__file__).parent))
count_steps = import_module("measures_for_processes").count_steps


def refuse(run):
    raise ValueError("no number today")


def trial(seed=0, **changes):
    return Trial(
        **{"system": "vae", "data": "pendulum", "seed": seed, "recipe": "demo", "overrides": QUICK}
        | changes
    )


def result(system, value, *, seed=0, metric="mic", n=100, data="pendulum"):
    score = {"name": metric, "value": value, "n": n, "noise_floor": 0.1, "details": {}}
    return TrialResult(trial(seed, system=system, data=data), (score,), minutes=1.0)


def test_a_finished_trial_is_read_not_made_again(tmp_path):
    first = make_trial(trial(), tmp_path, count_steps)
    again = make_trial(trial(), tmp_path, refuse)
    assert first.scores == again.scores
    assert first.scores[0]["value"] == 2


def test_another_recipe_is_another_trial(tmp_path):
    make_trial(trial(), tmp_path, count_steps)
    longer = trial(overrides=(*QUICK, "training.steps=3"))
    assert make_trial(longer, tmp_path, count_steps).scores[0]["value"] == 3
    assert len(list(tmp_path.iterdir())) == 2


def test_a_run_that_was_trained_but_not_measured_is_not_trained_again(tmp_path):
    with pytest.raises(ValueError, match="today"):
        make_trial(trial(), tmp_path, refuse)
    folder = trial().folder(tmp_path)
    weights = sorted((folder / "checkpoints").iterdir())
    written = [path.stat().st_mtime_ns for path in weights]
    make_trial(trial(), tmp_path, count_steps)
    assert [path.stat().st_mtime_ns for path in weights] == written


def test_processes_side_by_side_keep_the_order_and_the_good_ones(tmp_path):
    made = run_trials(
        [trial(1), trial(0)], tmp_path, measure=partial(count_steps, factor=2), jobs=2, label="t"
    )
    assert [o.trial.seed for o in made] == [1, 0]
    assert [o.scores[0]["value"] for o in made] == [4, 4]
    broken = trial(overrides=("data.size=33",))
    with pytest.raises(StudyError, match="1 of 2 trainings failed"):
        run_trials([broken, trial(2)], tmp_path, measure=count_steps, jobs=1, label="t")
    assert (trial(2).folder(tmp_path) / SCORES).is_file()


def test_rows_are_means_over_seeds_beside_the_paper():
    rows = result_rows(
        [result("vae", 0.2), result("vae", 0.4, seed=1), result("beta-vae", 0.5)],
        {("vae", "pendulum", "mic"): 0.25},
    )
    vae, beta = rows
    assert vae["value"] == pytest.approx(0.3)
    assert vae["spread"] == pytest.approx(0.1414, abs=1e-4)
    assert (vae["seeds"], vae["of_seeds"]) == (2, [0, 1])
    assert (vae["paper"], vae["n"]) == (0.25, 100)
    assert (beta["seeds"], beta["spread"], beta["paper"]) == (1, None, None)
    assert vae["recipe"] == f"demo {' '.join(QUICK)}"
    json.dumps(rows, allow_nan=False)


def test_tables_take_the_largest_n_unless_told():
    rows = result_rows(
        [result("vae", 0.2), result("vae", 0.6, n=500)], {("vae", "pendulum", "mic"): 0.3}
    )
    columns = [Column("MIC", "mic", form=".0%"), Column("few", "mic", n=100, form=".0%")]
    (table,) = study_tables(rows, {"Found": [*columns, Column("absent", "tic")]})
    assert table == Table(
        "Found: pendulum",
        ("system", "MIC", "few"),
        (("vae", "60% [30%]", "20% [30%]"),),
        "1 seed, n = 500.",
    )
    assert "| vae | 60% [30%] | 20% [30%] |" in to_markdown(table)


def test_what_is_rounded_to_nothing_has_no_sign():
    rows = result_rows([result("vae", -0.001), result("gan", -0.01)], {})
    (table,) = study_tables(rows, {"Found": [Column("MIC", "mic", form=".2f")]})
    assert [line[-1] for line in table.lines] == ["0.00", "-0.01"]


def test_lines_of_different_numbers_of_seeds_tell_them():
    rows = result_rows([result("vae", 0.2), result("vae", 0.4, seed=1), result("gan", 0.5)], {})
    (table,) = study_tables(rows, {"Found": [Column("MIC", "mic", form=".1f")]})
    assert table.headings == ("system", "seeds", "MIC")
    assert [line[:2] for line in table.lines] == [("vae", "2"), ("gan", "1")]


def test_cells_of_fewer_seeds_than_their_line_tell_it():
    few = result("vae", 0.3)
    few = replace(few, scores=({**few.scores[0], "name": "tic"},))
    rows = result_rows([result("vae", 0.2), result("vae", 0.4, seed=1), few], {})
    columns = [Column("MIC", "mic", form=".1f"), Column("TIC", "tic", form=".1f")]
    (table,) = study_tables(rows, {"Found": columns})
    assert table.lines == (("vae", "0.3 ± 0.1", "0.3 (1 of 2 seeds)"),)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
@pytest.mark.parametrize("profile", ["smoke", "paper"])
def test_every_trial_of_a_study_has_a_valid_recipe_of_its_own(study: Study, profile, tmp_path):
    trials = study.trials(profile, (0, 1))
    folders = {trial.folder(tmp_path) for trial in trials}
    assert len(folders) == len(trials) > 0
    for made in trials:
        assert made.read_recipe().training["threads"] == 1
        assert made.data.startswith(read_recipe(made.recipe, made.overrides).data["name"])


def test_all_labels_are_the_trial_of_another_study():
    """So that it is not trained again where that study was made."""
    planned = {name: STUDIES[name].trials("paper", [0, 1]) for name in ("labels", "causalvae")}
    whole = [t.read_recipe() for t in planned["labels"] if t.note == "100 %"]
    known = [t.read_recipe() for t in planned["causalvae"]]
    assert len(whole) == 2
    assert all(recipe in known for recipe in whole)
    some = [t.read_recipe() for t in planned["labels"] if t.note != "100 %"]
    assert not any(recipe in known for recipe in some)


def test_reading_closely_begins_with_the_weights_of_the_usual_training():
    planned = STUDIES["causalvae"].trials("paper", [0, 1])
    closely = [t for t in planned if "model.abduction=least-squares" in t.overrides]
    assert len(closely) == 6  # three data sets, two seeds
    for t in closely:
        assert t.after in planned
        own, before = t.read_recipe(), t.after.read_recipe()
        assert (own.seed, own.data) == (before.seed, before.data)
        assert own.model == before.model | {"abduction": "least-squares"}
