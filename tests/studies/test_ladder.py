"""The trials of the ladder's study, and its estimate of the likelihood."""

import numpy as np
import pytest

from disentwine.contracts.score import Score
from disentwine.studies import ladder


def test_every_published_number_has_its_trial():
    made = ladder.trials("paper", (0, 1, 2))
    published = {(s, data, note) for s, data, _, note in ladder.PUBLISHED}
    assert published <= {(t.system, t.data, t.note) for t in made}
    assert {(t.system, t.data, t.note) for t in made if t.stage <= 2} <= published


def test_fine_tuning_goes_on_where_the_usual_training_ends():
    (tuned,) = (t for t in ladder.trials("paper", (0,)) if "fine-tuned" in t.note)
    recipe = tuned.read_recipe()
    assert recipe.model["importance_from"] == ladder.STEPS["mnist"]
    assert recipe.training["steps"] == ladder.STEPS["mnist"] + ladder.FINE_TUNED


def test_systems_differ_in_what_they_are_named_for():
    made = {
        t.system: t.read_recipe().model
        for t in ladder.trials("paper", (0,))
        if t.note == "64-32-16-8-4" and t.data == "omniglot"
    }
    assert [made[s]["batch_norm"] for s in ("vae", "vae+bn", "vae+bn+wu", "ladder-vae")] == [
        *(False, True, True, True)
    ]
    assert [made[s]["warm_up_steps"] for s in ("vae", "vae+bn", "vae+bn+wu", "ladder-vae")] == [
        *(0, 0, 4500, 4500)
    ]
    assert made["ladder-vae"]["name"] == "ladder-vae"


@pytest.fixture
def bounds(monkeypatch):
    """Each image has a likelihood of its own, from which few samples are far."""
    own = np.random.default_rng(0).normal(-100, 25, 500)

    def log_likelihood(model, dataset, indices, *, samples, seed, progress):
        per_image = own[indices] - 300 / samples
        details = {"per_image": per_image, "standard_error": 1.0}
        return Score("log-likelihood", float(per_image.mean()), n=len(indices), details=details)

    monkeypatch.setattr(ladder, "log_likelihood", log_likelihood)
    return own


def test_few_images_correct_the_bound_of_few_samples(bounds):
    test = np.arange(0, 500, 2)
    found = ladder.likelihood(None, None, test, test[::10], samples=5000, few=100, seed=0)
    assert found.value == pytest.approx(bounds[test].mean() - 300 / 5000)
    assert found.n == 250
    assert found.details["error_of_correction"] == pytest.approx(0, abs=1e-9)


def test_where_all_images_get_all_samples_nothing_is_corrected(bounds):
    test = np.arange(500)
    found = ladder.likelihood(None, None, test, test, samples=50, few=1, seed=0)
    assert found.value == pytest.approx(bounds.mean() - 6)
    assert found.details["corrected_on"] == 500
