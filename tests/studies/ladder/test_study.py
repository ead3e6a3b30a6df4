"""The trials of the ladder's study, and its estimate of the likelihood."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.data import Arrays
from disentwine.evaluation import likelihood
from disentwine.evaluation.likelihood import corrected_log_likelihood
from disentwine.evaluation.protocols import active_per_layer, mean_latent_kl
from disentwine.models import LadderVAE
from disentwine.studies.ladder import (
    figures as ladder_figures,
)
from disentwine.studies.ladder import (
    study as ladder,
)
from disentwine.studies.trial import Trial, TrialResult

PAPER = ladder.trials("paper", (0, 1, 2))
DEEPEST = "64-32-16-8-4"


def test_every_published_number_has_its_trial_or_is_marked_as_published_only():
    published = {(s, data, note) for s, data, _, note in ladder.PUBLISHED}
    made = {(t.system, t.data, t.note) for t in PAPER}
    assert published <= made
    assert not {(s, data, note) for s, data, _, note in ladder.PUBLISHED_ONLY} & made
    assert {(t.system, t.data, t.note) for t in PAPER if t.stage in (1, 3)} <= published


def test_what_the_paper_claims_comes_first():
    first = [t for t in PAPER if t.stage == 1]
    assert {t.note.partition(",")[0] for t in first} == {DEEPEST}
    assert [(t.system, t.data) for t in first[:2]] == [("ladder-vae", "mnist")] * 2
    on_omniglot = {(t.system, t.seed) for t in first if t.data == "omniglot"}
    assert on_omniglot == {(system, seed) for system in ladder.SYSTEMS for seed in (0, 1, 2)}
    compared = [t for t in PAPER if t.stage == 2]
    assert {t.system for t in compared} == set(ladder.SYSTEMS)
    assert len({t.read_recipe().training["steps"] for t in compared}) == 1


def test_fine_tuning_begins_with_the_finished_ladder():
    usual, tuned = PAPER[:2]
    assert tuned.after == usual
    recipe, before = tuned.read_recipe(), usual.read_recipe()
    assert recipe.model == before.model | {"importance_samples": 10, "warm_up_steps": 0}
    assert recipe.data == before.data
    assert recipe.training["steps"] == ladder.FINE_TUNED
    assert recipe.training["learning_rate"] < before.training["learning_rate"]
    assert tuned.seed == usual.seed


def test_systems_differ_in_what_they_are_named_for_and_in_nothing_else():
    made = {
        t.system: t.read_recipe()
        for t in PAPER
        if (t.note, t.data, t.seed) == (DEEPEST, "omniglot", 0)
    }
    order = ("vae", "vae+bn", "vae+bn+wu", "ladder-vae")
    models = [made[system].model for system in order]
    assert [m["batch_norm"] for m in models] == [False, True, True, True]
    assert [m["warm_up_steps"] for m in models] == [0, 0, 5600, 5600]
    assert [m["name"] for m in models] == ["hierarchical-vae"] * 3 + ["ladder-vae"]
    named = {"name", "batch_norm", "warm_up_steps"}
    rest = [{key: v for key, v in m.items() if key not in named} for m in models]
    assert all(other == rest[0] for other in rest)
    decays = {system: recipe.training.pop("weight_decay") for system, recipe in made.items()}
    assert decays == ladder.WEIGHT_DECAY
    assert all(recipe.training == made["vae"].training for recipe in made.values())


def test_pictures_compare_what_was_trained_alike():
    """The long ladder has no like; of 20,000 updates there are two systems."""
    short = f"{DEEPEST}, 20,000 steps"
    made = [("ladder-vae", DEEPEST), ("ladder-vae", short), ("vae", short), ("vae", "64")]
    results = [
        TrialResult(Trial(system, "mnist", 0, "ladder-vae-mnist", note=note), (), 1.0)
        for system, note in made
    ]
    (compared,) = ladder_figures._compared(results).values()
    assert [o.trial.note for o in compared.values()] == [short, short]
    (deepest,) = ladder_figures._deepest(results).values()
    assert list(deepest) == ["ladder-vae", "ladder-vae, 20,000 steps", "vae, 20,000 steps"]


def test_courses_are_drawn_without_weights_of_those_that_have_one(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder_figures, "_training_images", lambda data: 256)
    shown = {}
    monkeypatch.setattr(ladder_figures.figures, "save_figure", lambda figure, path: path)
    monkeypatch.setattr(
        ladder_figures.figures,
        "activity_over_training",
        lambda activity, **more: shown.update(activity=activity, **more),
    )
    monkeypatch.setattr(
        ladder_figures.figures, "score_curves", lambda curves, **more: shown.update(of=curves)
    )
    long, _, *others = ladder.trials("smoke", [0])[:3]
    scores = {"train": -2.0, "validation": -3.0, "unit-kl": [0.5] * 12}
    learning_curve = [{"step": step, "scores": scores} for step in (0, 10, 20)]
    results = [
        TrialResult(long, (), 1.0),
        *(TrialResult(other, (), 1.0, learning_curve) for other in others),
    ]
    assert len(ladder_figures.activity_figures(results, tmp_path)) == 1
    assert len(ladder_figures.learning_curve_figures(results, tmp_path)) == 1
    (system,) = {other.system for other in others}
    assert {name: values.shape for name, values in shown["activity"].items()} == {system: (3, 12)}
    assert shown["layers"][system] == [1] * 8 + [2] * 4
    assert [curve.name for curve in shown["of"]] == [system]
    assert ladder_figures.activity_figures(results[:1], tmp_path) == []


def test_a_unit_is_active_by_what_it_carries_along_draws():
    """A layer above that says nothing, and one unit below that says much."""
    shapes = Arrays(images=np.random.default_rng(0).integers(0, 256, (50, 8, 8, 1), np.uint8))
    with fixed_noise(0):
        model = LadderVAE.for_data(shapes, layers=(3, 2), hidden=(8, 6), batch_norm=False)
    one = math.log(math.expm1(1.0))  # whose softplus is 1
    with torch.no_grad():
        for linear in (model.priors[0].head.linear, *(head.linear for head in model.heads)):
            linear.weight.zero_()
            linear.bias.zero_()
            linear.bias[len(linear.bias) // 2 :] = one
        # As good as no word from below on units 1 and 2 of the first layer, a clear one on unit 0.
        model.heads[0].linear.bias[:3] = torch.tensor([3.0, 0.0, 0.0])
        model.heads[0].linear.bias[4:] = 1e6
    kl = mean_latent_kl(model, shapes, np.arange(50))
    # Merged, N(3, 1) and N(0, 1) are N(1.5, 1/2).
    expected = 0.5 * (1.5**2 + 0.5 - 1 + math.log(2))
    np.testing.assert_allclose(kl, [expected, 0, 0, 0, 0], atol=1e-4)
    # Maps of classes are of draws: a layer that says nothing is a cloud, not its means' last digits.
    _, top = ladder_figures.sampled_latents(
        SimpleNamespace(model=model, dataset=shapes), np.arange(50)
    )
    np.testing.assert_allclose(top.std(0), 1, atol=4.5 * (2 * 50) ** -0.5)
    scores = active_per_layer(model, kl, n=50)
    assert [(s.name, s.value) for s in scores] == [
        ("active-units", 1),
        ("active-units:1", 1),
        ("active-units:2", 0),
    ]


@pytest.fixture
def bounds(monkeypatch):
    """Each image has a likelihood of its own, from which few samples are far."""
    own = np.random.default_rng(0).normal(-100, 25, 500)

    def log_likelihood(model, dataset, indices, *, samples, seed, progress):
        per_image = own[indices] - 300 / samples
        details = {"per_image": per_image, "standard_error": 1.0}
        return Score("log-likelihood", float(per_image.mean()), n=len(indices), details=details)

    monkeypatch.setattr(likelihood, "log_likelihood", log_likelihood)
    return own


def test_few_images_correct_the_bound_of_few_samples(bounds):
    test = np.arange(0, 500, 2)
    found = corrected_log_likelihood(None, None, test, test[::10], samples=5000, few=100, seed=0)
    assert found.value == pytest.approx(bounds[test].mean() - 300 / 5000)
    assert found.n == 250
    assert found.details["error_of_correction"] == pytest.approx(0, abs=1e-9)


def test_where_all_images_get_all_samples_nothing_is_corrected(bounds):
    test = np.arange(500)
    found = corrected_log_likelihood(None, None, test, test, samples=50, few=1, seed=0)
    assert found.value == pytest.approx(bounds.mean() - 6)
    assert found.details["corrected_on"] == 500
