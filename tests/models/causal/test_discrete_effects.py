"""Effects of few values follow their causes, and stay among their values."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import fit, load_run
from disentwine.causal.concepts import discrete_values
from disentwine.data import Arrays, Flow
from disentwine.models import MODELS
from disentwine.models.causal.layered_base import LayeredModel

LAYERED = ("causal-vae/layered", "causal-wae/layered")
PAIR = (("a", "b"),)


def pictures(a: np.ndarray, b: np.ndarray, **options: Any) -> Arrays:
    """A square for each of two labels, its grey the label from -1 to 1."""
    images = np.full((len(a), 16, 16, 1), 128.0)
    images[:, 2:6, 4:12] += 100 * a[:, None, None, None]
    images[:, 10:14, 4:12] += 50 * b[:, None, None, None]
    # No two alike, for what is drawn of an image is always the same.
    images += np.random.default_rng(1).integers(-2, 3, images.shape)
    factors = np.stack([a, b], axis=1)
    return Arrays(images=images.astype(np.uint8), factors=factors, names=("a", "b"), **options)


def coin(p: float, n: int = 6000) -> Arrays:
    """b is a with probability p."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, n).astype(float)
    return pictures(a, np.where(rng.random(n) < p, a, 1 - a))


def with_mechanisms(name: str, data: Arrays, *, steps: int = 400, **options: Any) -> LayeredModel:
    """The model once its mechanisms are learnt, and nothing else."""
    torch.manual_seed(0)
    model: Any = MODELS[name].for_data(data, **({"edges": PAIR} | options))
    train = torch.from_numpy(data.factors[data.split["train"]]).float()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 0.003 * (1 - step / steps)
        u = model.standardise(train[torch.randint(len(train), (256,))])
        model.update_errors(u, u, torch.ones(len(u)).bool())
        optimiser.zero_grad()
        model.mechanism_terms(u, torch.ones(len(u)).bool())["mechanisms"].mean().backward()
        optimiser.step()
    return model.eval()


@torch.no_grad()
def means(model: LayeredModel, causes: list[float]) -> list[float]:
    """What mechanisms say of b, in its own unit, at values of a."""
    u = model.standardise(torch.tensor([[cause, 0.0] for cause in causes]))
    return (model.mechanism(1, u) * model.scale[1] + model.mean[1]).tolist()


@pytest.mark.parametrize("name", LAYERED)
@pytest.mark.parametrize("p", [0.6, 0.8, 0.95])
def test_a_two_valued_effect_follows_a_two_valued_cause(name: str, p: float) -> None:
    """b = a with probability p: an effect of 2 p - 1, to three standard errors and what training errs."""
    data = coin(p)
    off, on = means(with_mechanisms(name, data), [0.0, 1.0])
    labels = data.factors[data.split["train"]]
    error = 2 * np.sqrt(p * (1 - p) / len(labels))
    assert on - off == pytest.approx(2 * p - 1, abs=3 * error + 0.02)


@pytest.mark.parametrize("name", LAYERED)
def test_a_two_valued_effect_follows_a_continuous_cause(name: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 6000)
    b = (rng.random(6000) < 1 / (1 + np.exp(-3 * a))).astype(float)
    found = means(with_mechanisms(name, pictures(a, b)), [-1.0, -0.5, 0.0, 0.5, 1.0])
    truth = 1 / (1 + np.exp([3, 1.5, 0, -1.5, -3]))
    assert found == pytest.approx(truth, abs=0.07)


@pytest.mark.parametrize("p", [0.6, 0.8])
def test_a_counterfactual_stays_among_the_values_and_is_right_over_images(p: float) -> None:
    """No more effects change than must: of those that are not what the cause says, 1 - (1 - p) / p."""
    data = coin(p)
    model = with_mechanisms("causal-vae/layered", data)
    a, b = torch.from_numpy(data.factors).float().T
    z = model.standardise(torch.stack([a, b], dim=1))
    latents = torch.cat([z, torch.rand(len(z), 1)], dim=1)
    on = model.read(model.intervene(latents, {"a": 1.0}))[:, 1]
    assert set(on.round(decimals=3).tolist()) == {0.0, 1.0}
    assert on.mean().item() == pytest.approx(p, abs=0.03)
    torch.testing.assert_close(on[a == 1], b[a == 1])
    assert (on >= b - 1e-3).all()
    changed = on[(a == 0) & (b == 0)].mean().item()
    assert changed == pytest.approx(1 - (1 - p) / p, abs=0.04)


def test_the_likeliest_of_three_values_follows_and_the_shift_of_a_cause_is_a_shift() -> None:
    """b = a + coin of {0, 1}: additive noise all the same, so that each b moves by exactly one."""
    rng = np.random.default_rng(0)
    a, own = rng.integers(0, 2, (2, 6000)).astype(float)
    model = with_mechanisms("causal-vae/layered", pictures(a, a + own))
    assert model.composition.discrete_values == ((), (0.0, 1.0, 2.0))
    assert means(model, [0.0, 1.0]) == pytest.approx([0.5, 1.5], abs=0.05)
    z = model.standardise(torch.tensor([[0.0, 0.0], [0.0, 1.0]]).repeat(50, 1))
    latents = torch.cat([z, torch.rand(100, 1) * 0.9 + 0.05], dim=1)
    on = model.read(model.intervene(latents, {"a": 1.0}))[:, 1]
    torch.testing.assert_close(on, torch.tensor([1.0, 2.0]).repeat(50))


@pytest.mark.parametrize("abduction", ["encoder", "least-squares"])
def test_pictures_show_the_effect_and_answer_the_same_alone_or_among_others(abduction: str) -> None:
    data = coin(0.8, n=3000)
    torch.manual_seed(0)
    model: Any = MODELS["causal-vae/layered"].for_data(data, edges=PAIR, abduction=abduction)
    model = fit(model, data, steps=800, learning_rate=0.003, progress=False)
    test = data.split["test"]
    before = data.images[test]
    on, again = model.do(before, a=1), model.do(before, a=1)
    assert np.array_equal(on, again)
    shown = (on[:, 12, 8, 0].astype(float) - 128) / 50
    assert ((np.abs(shown) < 0.2) | (np.abs(shown - 1) < 0.2)).mean() > 0.97
    assert shown.mean() == pytest.approx(0.8, abs=0.08)
    for i in range(10):
        assert np.abs(model.do(before[i], a=1).astype(int) - on[i]).max() <= 1
    same = model.do(before, a=lambda old: old)
    assert np.abs(same.astype(int) - model.reconstruct(before)).max() <= 1
    assert model.sample(200, a=1)[:, 0, 12, 8].mean().item() == pytest.approx(
        (128 + 0.8 * 50) / 255, abs=0.05
    )


def test_effects_of_few_values_are_told_by_the_labels() -> None:
    rng = np.random.default_rng(0)
    a, many = rng.integers(0, 2, 600), rng.integers(0, 9, 600)
    both = {"graph_ab": pictures(a, many / 8), "graph_ba": pictures(many / 8, a)}
    graphs = {key: MODELS["causal-vae"].for_data(d, edges=PAIR).graph for key, d in both.items()}
    assert discrete_values(both["graph_ab"], graphs["graph_ab"]) == ((), ())
    assert discrete_values(both["graph_ba"], graphs["graph_ba"]) == ((), (0.0, 1.0))
    categories = pictures(a, many / 8, kinds={"b": "categorical"})
    assert len(discrete_values(categories, graphs["graph_ab"])[1]) == 9
    assert set(
        MODELS["causal-vae/layered"].for_data(Flow(size=32)).composition.discrete_values
    ) == {()}


def test_a_model_that_knows_no_levels_is_as_it_was() -> None:
    """As of a checkpoint from before there were any."""
    model: Any = MODELS["causal-vae/layered"].for_data(coin(0.8, n=600), edges=PAIR)
    composition = replace(model.composition, discrete_values=())
    older = type(model)(model.image_shape, model.concept_spec, model.graph, composition, edges=PAIR)
    assert older.categorical == ()
    assert older.abduct(torch.rand(3, 1, 16, 16)).shape == (3, 2)


def test_levels_are_saved_and_loaded(tmp_path: Path) -> None:
    data = coin(0.8, n=600)
    model: Any = MODELS["causal-wae/layered"].for_data(data, edges=PAIR)
    model = fit(model, data, steps=2, out=tmp_path / "run", progress=False)
    loaded: Any = load_run(tmp_path / "run").model
    assert loaded.composition == model.composition
    assert model.composition.discrete_values == ((), (0.0, 1.0))
    assert np.array_equal(loaded.do(data.images[:9], a=1), model.do(data.images[:9], a=1))
