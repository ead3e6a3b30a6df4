"""Every score that a study's record has can be measured by evaluators."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.data import Pendulum
from disentwine.errors import UsageError
from disentwine.evaluation import EVALUATORS, actions, evaluate, held_out
from disentwine.evaluation.probes import cached_probe, train_probe
from disentwine.models import CTVAE, VAE, CausalVAE, LadderVAE
from disentwine.testing import small_grid

TINY: dict[str, Any] = {"autoencoder": {"codebook_size": 8, "code_dim": 4, "channels": 8}}

EDGES = (("light_angle", "shadow_length"), ("pendulum_angle", "shadow_position"))

FEW: dict[str, Any] = {
    "log-likelihood": {"samples": 2},
    "protocols": {"points": (60, 30)},
    "validation": {"points": (60, 30)},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "train_probe", partial(train_probe, steps=1))


@pytest.fixture(scope="module")
def pendulum() -> Pendulum:
    data = Pendulum(size=32)
    data.split = {name: indices[:120] for name, indices in data.split.items()}
    return data


def measured(model: Model, data: Dataset) -> set[str]:
    found = evaluate(model, data, ["mic-tic"], evaluators="all", options=FEW)
    names = [(score.name, score.n) for score in found.scores]
    assert len(names) == len(set(names))
    return {score.name for score in found.scores}


def test_a_causal_model_has_every_score_of_its_studies(pendulum: Pendulum) -> None:
    names = measured(CausalVAE.for_data(pendulum, edges=EDGES), pendulum)
    per_concept = ("counterfactual-ratio", "counterfactual-share", "counterfactual-error")
    assert {f"{s}:{c}" for s in (*per_concept, "effect-error") for c in pendulum.names} <= names
    assert {"reconstruction-error", "mic", "tic", "shd", "sharpness", "sharpness-do"} <= names
    assert {"off-target-effect", "off-target-effect-causes"} <= names
    assert {"counterfactual-ratio", "counterfactual-share"} <= names


def test_mic_and_tic_are_also_measured_on_a_small_sample(pendulum: Pendulum) -> None:
    model = CausalVAE.for_data(pendulum, edges=EDGES)
    found = evaluate(model, pendulum, "none", evaluators=["small-samples"])
    assert [(score.name, score.n) for score in found.scores] == [("mic", 100), ("tic", 100)]


def test_a_hierarchy_has_every_score_of_its_study() -> None:
    data = small_grid((16, 16, 1))
    names = measured(LadderVAE.for_data(data, layers=(3, 2), hidden=(8, 6)), data)
    likelihood = {"log-likelihood", "standard-error", "error-of-correction", "elbo"}
    assert likelihood <= names
    assert {"kl_1", "kl_2", "active-units", "active-units:1", "active-units:2"} <= names


def test_unsupervised_models_have_every_score_of_their_studies() -> None:
    data = small_grid((16, 16, 1))
    names = measured(VAE.for_data(data, latent=3), data)
    protocols = {"z-diff", "z-diff-svm", "z-diff-200-pairs", "sap", "sap-all-units", "mig"}
    assert protocols <= names
    assert {f"validation:{name}" for name in (*protocols, "reconstruction-error")} <= names


def test_a_model_of_actions_has_every_score_of_its_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "READABLE", np.inf)  # a probe of one update predicts badly
    data = small_grid((16, 16, 1))
    names = measured(CTVAE.for_data(data, **TINY), data)
    assert {"action-accuracy", "factor-accuracy", "intervention-share"} <= names
    assert {"info-m", "info-e", "info-c", "action-accuracy-unseen"} <= names
    assert {"action-error", "action-error-floor"} <= names


def test_evaluators_have_one_name_each_and_unknown_ones_suggest_the_nearest(
    pendulum: Pendulum,
) -> None:
    names = [evaluator.name for evaluator in EVALUATORS]
    assert len(names) == len(set(names))
    assert not any(evaluator.opt_in for evaluator in EVALUATORS[:8])
    with pytest.raises(UsageError, match=r"no evaluator 'grahp'.*'graph'"):
        evaluate(VAE.for_data(pendulum), pendulum, evaluators=["grahp"])


def test_scores_come_in_the_order_in_which_evaluators_are_named(pendulum: Pendulum) -> None:
    model = VAE.for_data(pendulum, latent=2)
    found = evaluate(model, pendulum, evaluators=["active-latents", "reconstruction"])
    assert [s.name for s in found.scores] == ["active-units", "reconstruction-error"]


def test_a_probe_is_trained_once_for_a_data_set(pendulum: Pendulum) -> None:
    made: list[int] = []

    def dataset() -> Pendulum:
        made.append(1)
        return pendulum

    first, again = (cached_probe("pendulum of a test", dataset, steps=1) for _ in range(2))
    assert first is again
    assert len(made) == 1
    assert cached_probe("pendulum of a test", dataset, steps=2) is not first
    assert np.isfinite(first(pendulum.images[:3])).all()


def test_an_evaluator_without_scores_says_why(pendulum: Pendulum) -> None:
    model = VAE.for_data(pendulum, latent=2)
    every = evaluate(model, pendulum, "none", evaluators="all", options=FEW)
    assert every.skipped["graph"] == every.skipped["sharpness"] == "the model cannot intervene"
    assert every.skipped["unseen-pairs"] == "the model applies no actions"
    assert every.skipped["attributes"] == "not all factors are binary, or labels are missing"
    named = {"losses", "reconstruction", "active-latents", "disentanglement", "log-likelihood"}
    named |= {"likelihood-errors", "small-samples", "protocols", "validation"}
    assert every.skipped.keys() | named == {evaluator.name for evaluator in EVALUATORS}
    assert not every.skipped.keys() & named
    assert evaluate(model, pendulum, "none").skipped == {}
    alone = evaluate(CausalVAE.for_data(pendulum), pendulum, evaluators=["mean-counterfactuals"])
    assert "name 'counterfactuals' before it" in alone.skipped["mean-counterfactuals"]
