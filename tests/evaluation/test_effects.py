"""Concepts read back from do-images tell a right model from a wrong one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.causal import Graph
from disentwine.core.score import Score
from disentwine.data import Arrays, Pendulum
from disentwine.errors import DataError
from disentwine.evaluation.counterfactuals import drawn_values
from disentwine.evaluation.effects import effect_scores
from disentwine.evaluation.probes import ConceptProbe, train_probe

SHADOW = {"shadow_length", "shadow_position"}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pendulum() -> Pendulum:
    return Pendulum(size=48)


@pytest.fixture(scope="module")
def reader(pendulum: Pendulum) -> ConceptProbe:
    return train_probe(pendulum, steps=250)


class Simulator:
    """A model whose do() is the simulator itself."""

    def __init__(self, pendulum: Pendulum) -> None:
        self.pendulum = pendulum
        self.image_shape, self.concept_names = pendulum.image_shape, pendulum.names
        self.graph = Graph.from_networkx(pendulum.graph, pendulum.names)
        self.seen = {image.tobytes(): row for row, image in enumerate(pendulum.images)}

    def concepts(self, x: np.ndarray) -> np.ndarray:
        return self.pendulum.factors[[self.seen[image.tobytes()] for image in x]]

    def reconstruct(self, x: np.ndarray) -> np.ndarray:
        return x

    def do(self, x: np.ndarray, do: dict[str, Any]) -> np.ndarray:
        return self.pendulum.simulate(self.concepts(x), do).images


class MovesACause(Simulator):
    """Sets the shadow rightly, but turns the light a little as well, the shadow staying."""

    def do(self, x: np.ndarray, do: dict[str, Any]) -> np.ndarray:
        factors = self.concepts(x)
        if "shadow_length" in do:
            light = factors[:, 1]
            kept = {
                "light_angle": light + np.where(light > 90, -8, 8),
                "shadow_position": factors[:, 3],
            }
            do = {**do, **kept}
        return self.pendulum.simulate(factors, do).images


class ForgetsEffects(Simulator):
    """Sets a cause, but leaves the shadow where it was."""

    def do(self, x: np.ndarray, do: dict[str, Any]) -> np.ndarray:
        factors = self.concepts(x)
        kept = {name: factors[:, self.concept_names.index(name)] for name in SHADOW - set(do)}
        return self.pendulum.simulate(factors, {**do, **kept}).images


def measured(model: Any, reader: ConceptProbe, pendulum: Any) -> dict[str, Score]:
    scores = effect_scores(model, reader, pendulum, pendulum.split["test"][:300], seed=0)
    return {score.name: score for score in scores}


def test_a_reader_reads_images_it_has_not_seen(reader: ConceptProbe, pendulum: Pendulum) -> None:
    """A few seconds of training are enough for a tenth of a deviation where a pixel allows it."""
    assert (reader.error < [0.1, 0.1, 0.25, 0.15]).all()
    test = pendulum.split["test"]
    read = reader(pendulum.images[test])
    error = np.sqrt(np.square((read - pendulum.factors[test]) / reader.scale).mean(axis=0))
    np.testing.assert_allclose(error, reader.error, rtol=1e-6)
    labels = pendulum.factors[pendulum.split["train"]]
    np.testing.assert_allclose(reader.scale, labels.std(axis=0))


def test_a_reader_does_not_work_out_one_concept_from_the_others(
    reader: ConceptProbe, pendulum: Pendulum
) -> None:
    """A light moved without its shadow, which never occurs in the data."""
    factors = pendulum.factors[pendulum.split["test"][:300]]
    light = np.where(factors[:, 1] > 90, factors[:, 1] - 30, factors[:, 1] + 30)
    kept = {"shadow_length": factors[:, 2], "shadow_position": factors[:, 3]}
    odd = pendulum.simulate(factors, {"light_angle": light, **kept})
    error = np.sqrt(np.square((reader(odd.images) - odd.factors) / reader.scale).mean(axis=0))
    assert (error < 2 * np.array([0.1, 0.1, 0.25, 0.15])).all()


def test_the_same_seed_gives_the_same_reader(pendulum: Pendulum) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, again, other = (train_probe(pendulum, steps=3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    some = pendulum.images[:20]
    assert np.array_equal(first(some), again(some))
    assert not np.allclose(first(some), other(some))


def test_a_reader_learns_from_the_images_that_carry_labels(pendulum: Pendulum) -> None:
    """Scenes can be redrawn only where every label is known; without any, the error says so."""
    some = train_probe(pendulum.with_labels(0.1), steps=3)
    assert np.isfinite(some(pendulum.images[:5])).all()
    torn = pendulum.factors.copy()
    torn[::2, 0], torn[1::2, 1] = np.nan, np.nan
    partial = copy.copy(pendulum)
    partial.factors = torn
    with pytest.raises(DataError, match="every label"):
        train_probe(partial, steps=3)


def test_the_simulator_itself_is_as_good_as_the_reader(
    reader: ConceptProbe, pendulum: Pendulum
) -> None:
    found = measured(Simulator(pendulum), reader, pendulum)
    assert list(found) == [
        *(f"effect-error:{name}" for name in pendulum.names),
        "off-target-effect",
        "off-target-effect-causes",
    ]
    for score in found.values():
        assert score.value == score.noise_floor
        assert score.n == 300
        assert score.details["about"]
    assert found["off-target-effect-causes"].value < 0.1
    moved = found["off-target-effect"].details["expected_movement"] > 0
    assert moved.astype(int).tolist() == [[1, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_a_moved_cause_is_seen(reader: ConceptProbe, pendulum: Pendulum) -> None:
    """Eight degrees of light are .35 deviations; nothing else is touched."""
    right = measured(Simulator(pendulum), reader, pendulum)
    wrong = measured(MovesACause(pendulum), reader, pendulum)
    leak = wrong["off-target-effect-causes"]
    assert leak.details["where"] == "do(shadow_length) moves light_angle"
    assert leak.value == pytest.approx(8 / reader.scale[1], rel=0.2)
    assert leak.value > 3 * leak.noise_floor
    name = "effect-error:shadow_length"
    assert wrong[name].value > right[name].value
    assert wrong[name].noise_floor == right[name].noise_floor
    for name in ("pendulum_angle", "light_angle", "shadow_position"):
        assert wrong[f"effect-error:{name}"].value == right[f"effect-error:{name}"].value


def test_an_effect_that_does_not_follow_is_seen(reader: ConceptProbe, pendulum: Pendulum) -> None:
    found = measured(ForgetsEffects(pendulum), reader, pendulum)
    error = found["effect-error:light_angle"].details
    assert (error["error"][2:] > 3 * error["error_floor"][2:]).all()
    assert error["error"][1] < 2 * error["error_floor"][1]
    length = found["effect-error:shadow_length"]
    assert length.value == length.noise_floor


def test_without_a_simulator_effects_are_left_out(pendulum: Pendulum) -> None:
    factors = pendulum.factors.copy()
    factors[:100, 2] = np.nan
    edges = list(pendulum.graph.edges)
    pictures = Arrays(
        images=pendulum.images,
        factors=factors,
        names=pendulum.names,
        edges=edges,
        allow_missing=True,
    )
    reader = train_probe(pictures, steps=30)
    assert np.isfinite(reader.error).all()
    found = measured(Simulator(pendulum), reader, pictures)
    error = found["off-target-effect"].details["error"]
    assert np.isnan(error).astype(int).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [0] * 4, [0] * 4]
    assert all(np.isfinite(s.value) and s.noise_floor is None for s in found.values())
    assert found["off-target-effect-causes"].n <= 300


def test_models_that_do_not_intervene_and_data_without_labels() -> None:
    grey = Arrays(images=np.zeros((20, 16, 16, 1), np.uint8))
    with pytest.raises(DataError, match="labels"):
        train_probe(grey)
    pictures = Arrays(
        images=np.zeros((20, 16, 16, 1), np.uint8), factors=np.arange(20.0)[:, None], names=["a"]
    )
    reader = train_probe(pictures, steps=1)
    assert effect_scores(object(), reader, pictures, pictures.split["test"], seed=0) == []


def test_half_of_the_values_are_on_the_grid_and_names_always_are() -> None:
    grid = np.repeat([0.0, 1.0, 2.0], 10)
    rng = np.random.default_rng(0)
    number, name = Pendulum.spec[0], type(Pendulum.spec[0])("shape", kind="categorical")
    on_grid = np.isin(drawn_values(number, grid, 100, rng), grid)
    assert on_grid.tolist() == [True, False] * 50
    assert np.isin(drawn_values(name, grid, 100, rng), grid).all()
