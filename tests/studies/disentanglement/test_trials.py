"""What the studies of unsupervised disentanglement measure, choose and compare."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from disentwine.core.dataset import evenly_spaced
from disentwine.data.images import write_image
from disentwine.data.synthetic.shapes2d import SPEC
from disentwine.evaluation.held_out import HeldOut
from disentwine.evaluation.protocols import attribute_scores, protocol_scores
from disentwine.studies.disentanglement import beta_vae as betavae
from disentwine.studies.disentanglement import dip_vae as dipvae
from disentwine.studies.disentanglement.dip_vae import ROWS, attribute_trials
from disentwine.studies.disentanglement.figures import learning_curve_figures, trade_off_figures
from disentwine.studies.disentanglement.measures import best_setting
from disentwine.studies.disentanglement.trials import annealed, training, with_reset_latents
from disentwine.studies.trial import Trial, TrialResult


@pytest.fixture(params=[betavae, dipvae], ids=["betavae", "dipvae"])
def study(request, monkeypatch):
    """Its trials where dSprites' grid is at hand."""
    monkeypatch.setattr(request.param, "available_data", lambda: ["dsprites-grid", "shapes2d"])
    return request.param


def keys(trials):
    return {(trial.system, trial.data, trial.note) for trial in trials}


def test_every_published_row_has_its_trial_in_the_stages_that_are_usual(study):
    usual = [t for t in study.trials("paper", (0, 1, 2)) if t.stage <= 2]
    rows = {(s, "dsprites-grid", note) for s, note in study.TABLE if "best" not in s}
    assert rows <= keys(usual)


def test_the_first_stage_has_every_seed_of_what_is_drawn_at_random(study):
    first = [t for t in study.trials("paper", (0, 1, 2)) if t.stage == 1]
    seeds: dict[tuple[str, str], set[int]] = {}
    for t in first:
        seeds.setdefault((t.system, t.note), set()).add(t.seed)
    alone = {system for (system, _), found in seeds.items() if found != {0, 1, 2}}
    assert alone <= {"ground truth", "pixels", "pca"}


def test_studies_share_trainings(monkeypatch, tmp_path):
    folders = []
    for module in (betavae, dipvae):
        monkeypatch.setattr(module, "available_data", lambda: ["shapes2d"])
        folders.append({t.folder(tmp_path).name for t in module.trials("paper", (0, 1))})
    shared = {name.rsplit("-", 2)[0] for name in folders[0] & folders[1]}
    assert {"shapes2d-vae", "shapes2d-beta-vae-beta-4"} <= shared


def test_large_penalties_are_estimated_from_large_batches(monkeypatch):
    monkeypatch.setattr(dipvae, "available_data", lambda: ["shapes2d"])
    for trial in dipvae.trials("paper", (0,)):
        recipe = trial.read_recipe()
        weight = recipe.model.get("lambda_od", 0)
        assert recipe.training["batch_size"] == 256 or weight <= 20


def grid():
    values = ([0, 1, 2], [0.5, 0.75, 1.0], [0.0, 2.0, 4.0, 6.0], [0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    factors = np.array(list(product(*values)), dtype=float)
    return SimpleNamespace(factors=factors, spec=SPEC, names=[factor.name for factor in SPEC])


def test_perfect_codes_and_codes_of_nothing():
    dataset = grid()
    rows = np.arange(len(dataset.factors))

    def scores(codes):
        found = protocol_scores(
            codes, dataset.factors, dataset.spec, points=(300, 100), floor=False
        )
        return {score.name: score.value for score in found}

    perfect = scores(dataset.factors / dataset.factors.std(axis=0))
    noise = scores(np.random.default_rng(0).normal(size=(len(rows), 5)))
    assert min(perfect["z-diff"], perfect["z-diff-no-shape"]) > 0.95
    assert min(perfect["z-diff-svm"], perfect["z-diff-no-shape-svm"]) > noise["z-diff-svm"] + 0.2
    assert perfect["mig"] == pytest.approx(1)
    assert perfect["sap"] > 0.9 > 0.3 > noise["sap"]
    blind = np.delete(dataset.factors, 2, axis=1)
    assert scores(blind)["sap-no-orientation"] > scores(blind)["sap"] + 0.1


def test_images_are_taken_from_everywhere():
    chosen = evenly_spaced(np.arange(1000) * 3, 10)
    assert (chosen[0], chosen[-1], len(chosen)) == (0, 2997, 10)
    assert np.ptp(np.diff(chosen)) <= 3


def result(note, seed=0, system="dip-vae-i", **scores):
    found = [
        {
            "name": name.replace("_", "-"),
            "value": value,
            "n": 10,
            "noise_floor": None,
            "details": {},
        }
        for name, value in scores.items()
    ]
    found += [
        {**score, "name": f"validation:{score['name'][10:]}"}
        for score in found
        if score["name"].startswith("validated-")
    ]
    trial = Trial(system, "shapes2d", seed, "beta-vae-shapes2d", note=note)
    return TrialResult(trial, tuple(found), minutes=1.0)


def test_a_setting_is_chosen_on_the_validation_split():
    results = [
        result(
            "lambda 1", z_diff=0.99, validated_z_diff=0.99, validated_reconstruction_error=0.001
        ),
        result("lambda 2", z_diff=0.99, validated_z_diff=0.8, validated_reconstruction_error=0.002),
        result(
            "lambda 2", 1, z_diff=0.99, validated_z_diff=0.9, validated_reconstruction_error=0.001
        ),
        result("lambda 5", z_diff=0.95, validated_z_diff=0.9, validated_reconstruction_error=0.010),
        result(
            "lambda 5", 1, z_diff=0.7, validated_z_diff=0.9, validated_reconstruction_error=0.010
        ),
    ]
    free = best_setting(results, "dip-vae-i", by="z-diff")
    assert [(o.trial.note, o.trial.seed) for o in free] == [("lambda 5", 0), ("lambda 5", 1)]
    bound = best_setting(results, "dip-vae-i", by="z-diff", error_at_most=0.0025)
    assert [(o.trial.note, o.trial.seed) for o in bound] == [("lambda 2", 0), ("lambda 2", 1)]
    assert {o.trial.system for o in bound} == {"dip-vae-i, best z-diff at error <= 0.0025"}
    assert best_setting(results, "dip-vae-i", by="z-diff", error_at_most=0.0005) == []
    assert best_setting(results[1:3], "dip-vae-i", by="z-diff") == []  # nothing to choose from


def test_the_trade_off_is_drawn_beside_the_papers(tmp_path, monkeypatch):
    written = []
    from disentwine import figures

    monkeypatch.setattr(figures, "trade_off", written.append)
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: path)
    results = [
        result("", system="vae", z_diff_no_shape_svm=0.8, sap=0.1, reconstruction_error=0.002),
        result(
            "beta 4",
            system="beta-vae",
            z_diff_no_shape_svm=0.9,
            sap=0.2,
            reconstruction_error=0.003,
        ),
        result(
            "beta 4 long",
            system="beta-vae",
            z_diff_no_shape_svm=0.9,
            sap=0.2,
            reconstruction_error=0.003,
        ),
    ]
    trade_off_figures(results, dipvae.PUBLISHED, tmp_path)
    ours, theirs = written[0]
    assert (ours.name, list(ours.settings), ours.published) == ("beta-vae", [1, 4], False)
    assert list(theirs.errors) == [0.0017, 0.0032]
    assert theirs.published


def test_the_course_of_what_is_woken_begins_where_its_start_ended(tmp_path, monkeypatch):
    written = []
    from disentwine import figures

    monkeypatch.setattr(figures, "score_curves", lambda curves, **options: written.extend(curves))
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: path)
    learning_curve = [{"step": s, "seconds": 60.0 * s, "scores": {"sap": s / 10}} for s in range(3)]
    start = replace(result("beta 16", system="beta-vae annealed"), learning_curve=learning_curve)
    after = result("beta 4", system="beta-vae reset latents")
    reset = replace(
        after, trial=replace(after.trial, after=start.trial), learning_curve=learning_curve
    )
    learning_curve_figures([start, reset], tmp_path)
    assert [(c.name, list(c.at)) for c in written] == [
        ("beta-vae annealed beta 16", [1, 2]),
        ("beta-vae reset latents beta 4", [3, 4]),
    ]


def test_table_2_takes_the_users_own_attributes(monkeypatch, tmp_path):
    folder = tmp_path / "attributes"
    folder.mkdir()
    lines = ["file,dark,wide"]
    for i in range(40):
        write_image(folder / f"{i}.png", np.full((8, 8, 3), 200 * (i % 2), np.uint8))
        lines.append(f"{i}.png,{1 - i % 2},{i // 2 % 2}")
    (folder / "concepts.csv").write_text("\n".join(lines))
    monkeypatch.delenv("DISENTWINE_DATA", raising=False)
    assert attribute_trials(0, stage=3) == []
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    trials = attribute_trials(0, stage=3)
    assert [(t.data, t.system, t.note) for t in trials] == [("attributes", *row) for row in ROWS]
    dataset = trials[0].read_recipe().build_dataset()
    model = SimpleNamespace(represent=lambda images: images.mean((1, 2, 3))[:, None])
    test = dataset.split["test"]
    given = model.represent(dataset.images[test])
    found = attribute_scores(HeldOut(model, dataset, "test", test, given=given), limit=40)
    scores = {score.name: score.value for score in found}
    assert scores["attribute-accuracy:dark"] == 1
    assert scores["attribute-accuracy:wide"] < 1


def test_an_annealed_training_differs_in_its_first_weight_alone():
    plain = training("dip-vae-ii", "shapes2d", 0, steps=1000)
    recipes = [trial.read_recipe() for trial in (plain, annealed(plain))]
    assert recipes[1].model == recipes[0].model | {"start_beta": 60.0, "warm_up_steps": 300}
    assert recipes[1].training == recipes[0].training
    assert annealed(plain).system == "dip-vae-ii annealed"


def test_a_woken_training_is_the_plain_one_begun_with_another():
    plain, start = (training(name, "shapes2d", 0) for name in ("dip-vae-i", "beta-vae"))
    trial = with_reset_latents(plain, after=start)
    recipes = [each.read_recipe() for each in (plain, trial)]
    changed = {"start_beta", "warm_up_steps"}
    assert {k for k, v in recipes[1].model.items() if recipes[0].model.get(k) != v} == changed
    assert recipes[1].model["start_beta"] == 0
    assert recipes[1].training["reset_inactive_latents"] is True
    assert recipes[1].training["init_from"] == str(start.folder(Path()))
    assert trial.system == "dip-vae-i reset latents"
    one = with_reset_latents(plain, after=start, latents=1)
    assert one.read_recipe().to_yaml() == trial.read_recipe().to_yaml().replace(
        "reset_inactive_latents: true", "reset_inactive_latents: 1"
    )
    assert one.system == "dip-vae-i 1 reset latent"
    longer = with_reset_latents(plain, after=start, times=2).read_recipe()
    assert longer.training == recipes[1].training | {"steps": 2 * recipes[0].training["steps"]}
    assert longer.model == recipes[1].model


@pytest.mark.parametrize("module", [betavae, dipvae])
def test_woken_trainings_come_with_what_they_begin_with(module, monkeypatch):
    monkeypatch.setattr(module, "available_data", lambda: ["shapes2d"])
    made = module.trials("paper", (0, 1))
    begun = [trial for trial in made if trial.after is not None]
    assert {trial.seed for trial in begun} == {0, 1}
    for trial in begun:
        assert trial.after in made
        assert trial.after.seed == trial.seed


def test_the_row_of_a_best_setting_does_not_tell_costs_again():
    names = {"validated_z_diff": 0.9, "seconds_per_1000_steps": 30.0, "sap_after_10_minutes": 0.1}
    results = [result(note, z_diff=0.9, **names) for note in ("lambda 1", "lambda 2")]
    (best,) = best_setting(results, "dip-vae-i", by="z-diff")
    told = {score["name"] for score in best.scores}
    assert "z-diff" in told
    assert not told & {"seconds-per-1000-steps", "sap-after-10-minutes"}
