"""What concepts may be set to: functions of all images at once, categories by name, values training saw."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import fit, load_run
from disentwine.causal.interventions import kept_labels, training_range
from disentwine.core.dataset import Factor
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
    monkeypatch.setattr(model, "paint", lambda z: model.values(z) * model.scale + model.mean)


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
    assert "height=1000 (2 to 8): outside of what training saw" in told
    model.sample(2, height=[5, -20])
    assert "height=-20 (2 to 8)" in capsys.readouterr().err


def test_what_training_saw_is_kept_with_a_run(tmp_path: Path) -> None:
    data = pictures()
    model = CausalVAE.for_data(data, edges=())
    fit(model, data, steps=2, batch_size=8, threads=1, out=tmp_path / "run", progress=False)
    loaded: Any = load_run(tmp_path / "run").model
    assert loaded.label_values == model.label_values == ((2.0, 8.0), COLOURS)


def test_nothing_is_judged_where_nothing_is_known(
    model: CausalModel[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """As of runs that were made before models knew."""
    model.label_values = ()
    model.do(pictures().images[:2], height=1000.0, colour=1.5)
    assert capsys.readouterr().err == ""
    with pytest.raises(UsageError, match="'colour' needs a number"):
        model.do(pictures().images[:2], colour="red")


def model_ranges(**kept: Any) -> Any:
    return SimpleNamespace(concept_names=("colour", "size"), **kept)


def test_a_model_tells_what_it_keeps_of_its_labels() -> None:
    keeps = model_ranges(
        label_values=(("red", "green", "blue"), (2.0, 9.0)),
        label_mean=(1.0, 5.0),
        label_scale=(1.0, 1.0),
    )
    assert training_range(keeps, None, "colour") == (0.0, 2.0)
    assert training_range(keeps, None, "size") == (2.0, 9.0)
    assert kept_labels(keeps, "colour") == ("red", "green", "blue")


@pytest.mark.parametrize("kept", [{}, {"label_values": ()}])
def test_older_models_keep_only_mean_and_scale(kept: dict[str, Any]) -> None:
    older = model_ranges(label_mean=(1.0, 5.0), label_scale=(1.0, 2.0), **kept)
    assert training_range(older, None, "size") == (1.0, 9.0)
    assert kept_labels(older, "size") == ()
    assert training_range(model_ranges(**kept), None, "size") == (-3.0, 3.0)
