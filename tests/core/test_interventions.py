"""Values of interventions: functions of all images at once, names of categories, training ranges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import fit, load_run
from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.core.dataset import Factor
from disentwine.core.interventions import Intervention
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.models import MODELS, CausalVAE, ConditionVAE
from disentwine.models.causal.base import CausalModel
from disentwine.nn.images import CHUNK

COLOURS = ("blue", "green", "grey", "red")

N = 300  # more than pass through a network at once


def pictures() -> Arrays:
    """A height from 2 to 8, and one of four colours."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.uniform(2, 8, N), rng.integers(0, 4, N)], axis=1)
    factors[:2, 0] = 2, 8
    images = rng.integers(0, 256, (N, 16, 16, 3), dtype=np.uint8)
    data = Arrays(images=images, factors=factors, names=("height", "colour"))
    data.spec = (Factor("height"), Factor("colour", kind="categorical", values=COLOURS))
    data.split = {**data.split, "train": np.arange(N - 2)}
    return data


@pytest.fixture(params=[cls for cls in MODELS.values() if issubclass(cls, CausalModel)])
def model(request: pytest.FixtureRequest) -> CausalModel[Any]:
    torch.manual_seed(0)
    options = {} if request.param is ConditionVAE else {"edges": ()}
    return request.param.for_data(pictures(), **options).eval()


def values_of(model: CausalModel[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the model answer with its concepts, in their labels' units, instead of images."""
    monkeypatch.setattr(
        model, "decode_latents", lambda z: model.values(z) * model.scale + model.mean
    )


def test_a_function_is_called_once_with_the_values_of_all_images(
    model: CausalModel[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    images, offsets = pictures().images, np.linspace(0, 1, N)
    old = model.concepts(images)[:, 0]
    assert N > CHUNK
    values_of(model, monkeypatch)
    calls: list[int] = []

    def shifted(values: np.ndarray) -> np.ndarray:
        calls.append(len(values))
        return values + offsets

    np.testing.assert_allclose(model.do(images, height=shifted)[:, 0], old + offsets, atol=1e-5)
    assert calls == [N]
    evened = model.do(images, height=lambda values: 0 * values + values.mean())[:, 0]
    np.testing.assert_allclose(evened, old.mean(), atol=1e-5)
    alone = model.do(images[0], height=lambda values: values + 1)
    np.testing.assert_allclose(alone[0], old[0] + 1, atol=1e-5)


def test_categories_are_set_by_name(
    model: CausalModel[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = pictures().images[:3]
    values_of(model, monkeypatch)
    for wanted, numbers in (
        ("red", [3, 3, 3]),
        (["red", "blue", "grey"], [3, 0, 2]),
        (2, [2, 2, 2]),
        (np.array([0, 1, 3]), [0, 1, 3]),
        (lambda old: 0 * old + 1, [1, 1, 1]),
        (lambda old: ["green"] * len(old), [1, 1, 1]),
    ):
        np.testing.assert_allclose(model.do(images, colour=wanted)[:, 1], numbers, atol=1e-6)
        np.testing.assert_allclose(model.sample(3, colour=wanted)[:, 1], numbers, atol=1e-6)


@pytest.mark.parametrize("wrong", ["purple", 1.5, 7, -1, [0, 1, 2.5], lambda old: old + 1])
def test_what_is_no_category_is_refused_with_the_list_of_them(
    model: CausalModel[Any], wrong: Any
) -> None:
    for answer in (
        lambda: model.do(pictures().images[:3], colour=wrong),
        lambda: model.sample(3, colour=wrong),
    ):
        with pytest.raises(UsageError, match="'colour' is one of blue, green, grey, red"):
            answer()


def test_a_picture_may_keep_what_was_read_between_categories(model: CausalModel[Any]) -> None:
    images = pictures().images[:3]
    read = model.concepts(images)[:, 1]
    assert not np.isin(read, range(4)).any()
    for same in (read, lambda old: old):
        kept = model.do(images, colour=same).astype(int)
        assert np.abs(kept - model.reconstruct(images)).max() <= 1


def test_guesses_are_told_once_a_call(
    model: CausalModel[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    images = pictures().images
    model.do(images, height=8.5, colour="red")
    model.sample(2, height=1.5)
    assert capsys.readouterr().err == ""
    model.do(images, height=1000.0)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "height=1000 (2 to 8): outside the training range" in told
    model.sample(2, height=[5, -20])
    assert "height=-20 (2 to 8)" in capsys.readouterr().err


def test_what_training_saw_is_kept_with_a_run(tmp_path: Path) -> None:
    data = pictures()
    model = CausalVAE.for_data(data, edges=())
    fit(model, data, steps=2, batch_size=8, threads=1, out=tmp_path / "run", progress=False)
    loaded: Any = load_run(tmp_path / "run").model
    assert loaded.concept_spec == model.concept_spec
    assert [concept.values for concept in loaded.concept_spec.concepts] == [(2.0, 8.0), COLOURS]


def test_where_no_range_is_known_two_standard_deviations_are_the_range(
    model: CausalModel[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """As of runs that were made before models stored it."""
    concepts = [replace(concept, values=()) for concept in model.concept_spec.concepts]
    model.concept_spec = ConceptSpec(tuple(concepts))
    model.do(pictures().images[:2], height=8.0, colour=1.5)
    assert capsys.readouterr().err == ""
    model.do(pictures().images[:2], height=1000.0)
    assert "height=1000" in capsys.readouterr().err
    with pytest.raises(UsageError, match="'colour' needs a number"):
        model.do(pictures().images[:2], colour="red")


def test_the_range_of_a_concept_is_that_of_its_labels_or_categories() -> None:
    colour = Concept("colour", "categorical", mean=1.0, values=("red", "green", "blue"))
    assert colour.range == (0.0, 2.0)
    assert colour.categories == ("red", "green", "blue")
    assert Concept("size", mean=5.0, values=(2.0, 9.0)).range == (2.0, 9.0)
    unknown = Concept("size", mean=5.0, std=2.0)
    assert unknown.range == (1.0, 9.0)
    assert unknown.categories == ()


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (2.0, "seen"),
        (8.6, "seen"),
        (1.4, "seen"),
        (8.7, "beyond"),
        (68.0, "beyond"),
        (-58.0, "beyond"),
        (68.1, "absurd"),
        (-59.0, "absurd"),
    ],
)
def test_a_value_is_seen_beyond_or_absurd(value: float, position: str) -> None:
    """Within 10 % of the range of training labels, within ten ranges, or further away."""
    assert Concept("height", values=(2.0, 8.0)).position(value) == position


def test_a_counterfactual_says_what_was_what_is_and_what_follows(
    model: CausalModel[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    images = pictures().images
    found = model.counterfactual(images, {"height": np.linspace(2, 20, N)})
    assert np.array_equal(found.images, model.do(images, height=np.linspace(2, 20, N)))
    assert capsys.readouterr().err.count("\n") == 1, "`do` warns, and the answer does not"
    assert np.array_equal(found.before, np.asarray(model.concepts(images), dtype=np.float64))
    assert found.before.shape == found.after.shape == (N, 2)
    np.testing.assert_allclose(found.after[:, 0], np.linspace(2, 20, N), rtol=1e-5)
    assert np.array_equal(found.after[:, 1], found.before[:, 1])
    assert found.affected == ()
    assert [(x.name, x.value, x.position) for x in found.beyond] == [("height", 20.0, "beyond")]
    alone = model.counterfactual(images[0], {"colour": "red"})
    assert (alone.images.shape, alone.before.shape, alone.after.shape) == ((16, 16, 3), (2,), (2,))
    assert alone.beyond == ()


WORDS = ConceptSpec((Concept("height", values=(2.0, 8.0)), Concept("colour", values=COLOURS)))


@pytest.mark.parametrize(
    ("words", "mapping"),
    [
        (["height=5"], {"height": 5}),
        (["height=5", "colour=green"], {"height": np.float32(5), "colour": "green"}),
        (["colour=1", "height=5"], {"colour": 1, "height": torch.tensor(5.0)}),
        (["height-=.5"], {"height": lambda old: old - 0.5}),
    ],
)
def test_words_and_mappings_are_parsed_alike(words: list[str], mapping: dict[str, Any]) -> None:
    old = [[3.0, 0.0], [4.0, 2.0]]
    first, second = (
        Intervention.parse(do, WORDS.concepts).resolve(2, lambda: old) for do in (words, mapping)
    )
    assert list(first) == list(second)
    assert all(np.array_equal(first[i], second[i]) for i in first)


@pytest.mark.parametrize("do", [["colour=purple"], ["colour=7"], ["colour+=1"], ["colour="]])
def test_words_that_are_no_category_get_the_list_of_them(do: list[str]) -> None:
    with pytest.raises(
        UsageError, match="'colour' is one of blue, green, grey, red, or its number"
    ):
        Intervention.parse(do, WORDS.concepts)


def test_old_values_are_read_only_where_they_matter() -> None:
    def unavailable() -> Any:
        raise AssertionError

    do = Intervention.parse({"height": [5, 6], "colour": ["red", "blue"]}, WORDS.concepts)
    assert do.names == ("height", "colour")
    assert do.resolve(2, unavailable)[1].tolist() == [3.0, 0.0]


def test_latents_may_lie_between_categories() -> None:
    do = Intervention.parse({"colour": 1.5}, WORDS.concepts)
    assert do.resolve(1, lambda: [3, 0], between_categories=True)[1].tolist() == [1.5]
    with pytest.raises(UsageError, match=r"got 1\.5"):
        do.resolve(1, lambda: [3, 0])
    assert do.resolve(1, lambda: [3, 1.5])[1].tolist() == [1.5], "but an image keeps its own"
