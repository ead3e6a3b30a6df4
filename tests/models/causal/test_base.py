"""What every model that intervenes keeps: facts, causes, missing labels, and new images under do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import fit
from disentwine.core.capabilities import Generates, Intervenes
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays, Pendulum
from disentwine.errors import DataError, UsageError
from disentwine.models import MODELS
from disentwine.models.causal.base import CausalModel

NAMES = ("year", "height", "hole", "flow")
EDGES = (("year", "height"), ("height", "flow"), ("hole", "flow"))
INTERVENING = tuple(name for name, cls in MODELS.items() if issubclass(cls, CausalModel))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pictures(missing: np.ndarray | None = None) -> Arrays:
    """Labels far from 0 in one column, so that units cost digits; NaN where they are missing."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(120, 4)) * [5, 2, 1, 0.25] + [2015, 5, 3, 2]
    if missing is not None:
        factors[missing] = np.nan
    images = rng.integers(0, 256, (120, 16, 16, 3), dtype=np.uint8)
    return Arrays(images=images, factors=factors, names=NAMES, allow_missing=True)


def build(name: str, dataset: Any = None, **options: Any) -> CausalModel[Any]:
    if "edges" in inspect.signature(MODELS[name]).parameters:
        options = {"edges": EDGES} | options
    with fixed_noise(0):
        model = MODELS[name].for_data(dataset or pictures(), **options)
    assert isinstance(model, CausalModel)
    return model.eval()


def values_of(model: CausalModel[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model answer with its concepts, in their labels' units, instead of images."""
    monkeypatch.setattr(
        model, "decode_latents", lambda z: model.values(z) * model.scale + model.mean
    )


def descendants(model: CausalModel[Any], name: str) -> set[str]:
    return set(model.graph.descendants(name))


@pytest.mark.parametrize("name", INTERVENING)
def test_the_capabilities_are_there(name: str) -> None:
    model = build(name)
    assert isinstance(model, Intervenes)
    assert isinstance(model, Generates)


@pytest.mark.parametrize("name", INTERVENING)
def test_setting_a_fact_gives_the_reconstruction(name: str) -> None:
    model, images = build(name), pictures().images[:5]
    x = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    old, as_pictures = model.concepts(x).numpy(), model.concepts(images)
    for i, concept in enumerate(NAMES):
        same = model.do(x, {concept: old[:, i]})
        torch.testing.assert_close(same, model.reconstruct(x), atol=1e-6, rtol=0)
        same = model.do(x, {concept: lambda value: value})
        torch.testing.assert_close(same, model.reconstruct(x), atol=1e-6, rtol=0)
        again = model.do(images, {concept: as_pictures[:, i]}).astype(int)
        assert np.abs(again - model.reconstruct(images)).max() <= 1
    everything = dict(zip(NAMES, old.T, strict=True))
    torch.testing.assert_close(model.do(x, everything), model.reconstruct(x), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", INTERVENING)
def test_setting_a_fact_costs_no_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year in single precision is off by up to half an hour, which a trained painter may show."""
    model, images = build(name), pictures().images[:50]
    x = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    years = model.concepts(x)[:, 0].numpy()
    monkeypatch.setattr(model, "decode_latents", model.values)
    assert torch.equal(model.do(x, year=years)[:, 0], model.reconstruct(x)[:, 0])


@pytest.mark.parametrize("name", INTERVENING)
def test_what_is_not_caused_stays_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(name)
    values_of(model, monkeypatch)
    x = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    before = model.reconstruct(x)
    for i, concept in enumerate(NAMES):
        wanted = float(model.mean[i] + 1.5 * model.scale[i])
        after = model.do(x, {concept: wanted})
        follows = {concept, *descendants(model, concept)}
        for j, other in enumerate(NAMES):
            assert torch.equal(before[:, j], after[:, j]) == (other not in follows), other
        np.testing.assert_allclose(after[:, i], wanted, rtol=1e-6)


@pytest.mark.parametrize("name", INTERVENING)
def test_new_images_under_an_intervention(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise only the concept that is set and its effects differ."""
    model = build(name)
    images = model.sample(7, height=4.0)
    assert images.shape == (7, 3, 16, 16)
    assert images.min() >= 0
    assert images.max() <= 1
    values_of(model, monkeypatch)
    with fixed_noise(3):
        before = model.sample(7)
    assert len(before.unique(dim=0)) == 7
    wanted = np.linspace(3, 7, 7)
    for do in ({"height": wanted}, {"height": lambda old: 0 * old + wanted}):
        with fixed_noise(3):
            after = model.sample(7, do)
        np.testing.assert_allclose(after[:, 1], wanted, rtol=1e-6)
        follows = {"height", *descendants(model, "height")}
        for j, other in enumerate(NAMES):
            assert torch.equal(before[:, j], after[:, j]) == (other not in follows), other


@pytest.mark.parametrize("name", INTERVENING)
def test_wrong_samples_are_refused(name: str) -> None:
    model = build(name)
    with pytest.raises(UsageError, match="Did you mean 'height'"):
        model.sample(3, hight=1.0)
    for wrong in (np.zeros(4), np.zeros(2), lambda old: old[:2]):
        with pytest.raises(UsageError, match="one per image"):
            model.sample(3, height=wrong)
        with pytest.raises(UsageError, match="one per image"):
            model.do(pictures().images[:3], height=wrong)
    for n in (0, -1):
        with pytest.raises(UsageError, match="1 or more"):
            model.sample(n)
    for wrong in ("high", None, ["a", "b", "c"], lambda old: "high"):
        with pytest.raises(UsageError, match="'height' needs a number"):
            model.do(pictures().images[:3], height=wrong)


@pytest.mark.parametrize(("name", "spread"), [("causal-vae/layered", 0.0), ("condition-vae", 0.5)])
def test_new_images_are_as_the_training_labels(
    name: str, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means and correlations of 4,000 samples, within 5 standard errors; causes that go together in
    the labels go together in new images. ConditionVAE adds its prior's noise, 1 / sqrt(d)."""
    dataset = pictures()
    dataset.factors[:, 2] = 3 + 0.5 * (dataset.factors[:, 1] - 5)
    model = build(name, dataset)
    values_of(model, monkeypatch)
    n = 4000
    with fixed_noise(0):
        drawn = model.sample(n).numpy()
    labels = dataset.factors[dataset.split["train"]]
    scale = labels.std(axis=0) * np.sqrt(1 + spread**2)
    assert (np.abs(drawn.mean(axis=0) - labels.mean(axis=0)) < 5 * scale / n**0.5).all()
    together = np.corrcoef(drawn[:, 1], drawn[:, 2])[0, 1]
    assert abs(together - 1 / (1 + spread**2)) < 5 / n**0.5


@pytest.mark.parametrize("name", INTERVENING)
def test_training_goes_on_where_labels_are_missing(name: str) -> None:
    """Single labels, whole images, and whole batches without any."""
    rng = np.random.default_rng(1)
    missing = rng.random((120, 4)) < 0.1
    missing[rng.random(120) < 0.25] = True
    dataset = pictures(missing)
    model = build(name, dataset)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    # Enough steps to get better: weights that do worse on validation images than the first are not kept.
    fit(model, dataset, steps=20, batch_size=16, threads=1, save_every=10)
    after = model.state_dict()
    assert all(value.isfinite().all() for value in after.values())
    assert any(not torch.equal(before[key], after[key]) for key in after)
    x = torch.rand(6, 3, 16, 16)
    losses = model.train().loss(Batch(x, torch.full((6, 4), torch.nan)))
    losses.total.backward()
    assert all(term.isfinite().all() for term in losses.terms.values())
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", INTERVENING)
def test_what_a_missing_label_would_have_been_does_not_matter(name: str) -> None:
    """A label that is NaN acts on the loss through no other number."""
    model, x = build(name), torch.rand(6, 3, 16, 16)
    u = torch.from_numpy(pictures().factors[:6]).float()
    u[:, 1] = torch.nan
    u[3] = torch.nan
    with fixed_noise(0):
        first = model.loss(Batch(x, u)).total
    model.mean[1] += 100
    with fixed_noise(0):
        assert torch.equal(model.loss(Batch(x, u)).total, first)


@pytest.mark.parametrize("name", INTERVENING)
def test_one_image_in_a_hundred_labelled_is_enough_to_begin(name: str) -> None:
    pendulum = Pendulum(size=32)
    pendulum.factors = pendulum.factors.copy()
    train = pendulum.split["train"]
    labelled = np.random.default_rng(0).permutation(train)[:50]
    pendulum.factors[np.setdiff1d(train, labelled)] = np.nan
    with fixed_noise(0):
        model: Any = MODELS[name].for_data(pendulum)
    assert model.concept_names == pendulum.names
    assert set(model.graph.edges) == (set() if "condition" in name else set(pendulum.graph.edges))
    fit(model, pendulum, steps=2, batch_size=16, threads=1, save_every=10)
    assert np.isfinite(model.concepts(pendulum.images[:3])).all()


@pytest.mark.parametrize("name", INTERVENING)
def test_labels_that_teach_nothing_are_told(name: str) -> None:
    constant = pictures()
    constant.factors[:, 2] = 7
    with pytest.raises(DataError, match="'hole' has fewer than two different values"):
        build(name, constant)
    unlabelled = pictures()
    unlabelled.factors[unlabelled.split["train"]] = np.nan
    with pytest.raises(DataError, match="give the data set some"):
        build(name, unlabelled)
    with pytest.raises(DataError, match="give the data set some"):
        build(name, Arrays(images=np.zeros((20, 16, 16, 3), np.uint8)))


@pytest.mark.parametrize("name", ["causal-vae", "condition-vae"])
def test_no_image_needs_every_label_where_the_graph_is_known(name: str) -> None:
    missing = np.zeros((120, 4), dtype=bool)
    missing[np.arange(120), np.arange(120) % 4] = True
    model = build(name, pictures(missing))
    assert model.sample(2).isfinite().all()
