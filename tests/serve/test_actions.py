"""Actions, on a model that knows them exactly: a bar that steps to the side."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, Losses, Model
from disentwine.data import Arrays, Pendulum
from disentwine.errors import UsageError
from disentwine.serve.actions import actions_of, apply, factor_grid, retrieve
from disentwine.serve.images import Uploads, data_url
from disentwine.serve.loaded_run import EncodedImage, LoadedRun

PLACES = 32


class Stepper(Model):
    """Moves all pixels to the right or the left."""

    actions = ("+x", "-x", "+colour", "-colour")
    image_shape = (8, PLACES, 1)

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.asked = 0

    def loss(self, batch: Batch) -> Losses:
        return Losses({"nothing": self.weight.sum()})

    def represent(self, x: Any) -> Any:
        return x.reshape(-1)[:1]

    def reconstruct(self, x: Any) -> Any:
        return x

    def apply(self, x: Any, action: Any, *, times: int = 1) -> Any:
        self.asked += 1
        moved = sum({"+x": 1, "-x": -1}.get(name, 0) for name in action)
        return np.roll(x, moved, axis=1)

    def retrieve(self, x: Any, y: Any) -> Any:
        return np.array([np.array_equal(np.roll(x, 1, 1), y), 0.2, 0.5, 0.1])


@pytest.fixture(scope="module")
def bars() -> Arrays:
    grid = np.stack([axis.ravel() for axis in np.mgrid[:PLACES, :2]], axis=1)
    images = np.zeros((len(grid), 8, PLACES, 1), np.uint8)
    images[np.arange(len(grid)), :, grid[:, 0]] = 100 + 50 * grid[:, 1, None, None]
    kinds = {"x": "ordinal", "colour": "ordinal"}
    return Arrays(images=images, factors=grid, names=[*kinds], kinds=kinds)


@pytest.fixture
def loaded_run(bars: Arrays) -> LoadedRun:
    return LoadedRun(Stepper(), bars, 1)


def bar_at(loaded_run: LoadedRun, place: int) -> EncodedImage:
    """A bar of the first colour."""
    assert loaded_run.dataset is not None
    return EncodedImage(loaded_run.model, loaded_run.dataset.images[2 * place], 2 * place)


def test_actions_are_listed(loaded_run: LoadedRun) -> None:
    assert next((a.id, a.label) for a in actions_of(loaded_run)) == ("+x", "+ x")
    assert len(actions_of(loaded_run)) == 4


def test_pictures_are_those_of_the_data(loaded_run: LoadedRun) -> None:
    answer = apply(loaded_run, bar_at(loaded_run, 5), ["+x", "+x", "-x"])
    assert answer.images == answer.truths
    assert loaded_run.dataset is not None
    assert answer.images == [data_url(loaded_run.dataset.images[2 * i]) for i in (6, 7, 6)]


def test_pressing_again_computes_one_more(loaded_run: LoadedRun) -> None:
    encoded = bar_at(loaded_run, 5)
    first = apply(loaded_run, encoded, ["+x", "+x"]).images
    again = apply(loaded_run, encoded, ["+x", "+x", "+x"]).images
    assert again[:2] == first
    assert loaded_run.model.asked == 3


def test_a_step_out_of_the_data_has_no_truth(loaded_run: LoadedRun) -> None:
    answer = apply(loaded_run, bar_at(loaded_run, PLACES - 2), ["+x", "+x", "-x"])
    assert answer.truths is not None
    assert [truth is None for truth in answer.truths] == [False, True, True]
    assert answer.valid_steps == 1
    sent = apply(
        loaded_run, EncodedImage(loaded_run.model, np.zeros((8, PLACES, 1), np.uint8)), ["+x"]
    )
    assert sent.truths is None


def test_grids_step_by_the_values_that_occur() -> None:
    tens = Arrays(
        images=np.zeros((30, 8, 8, 1), np.uint8),
        factors=np.repeat([[10.0], [20.0], [40.0]], 10, axis=0),
        names=["size"],
        kinds={"size": "ordinal"},
    )
    grid = factor_grid(tens)
    assert grid is not None
    assert [row.tolist() for row in grid.rows_after(np.array([20.0]), ["+size"])] == [[40.0]]
    assert grid.rows_after(np.array([40.0]), ["+size", "-size"]) == []
    assert grid.rows_after(np.array([20.0]), ["+weight"]) == []


def thorough_truth(dataset: Dataset, row: np.ndarray, action: str) -> tuple[Any, Any]:
    """The row after an action, and its one image, by looking through the whole table."""
    column, sign = dataset.names.index(action[1:]), int(f"{action[0]}1")
    grid = np.unique(dataset.factors[:, column])
    grid = grid[np.isfinite(grid)]
    here = np.flatnonzero(grid == row[column])
    place = int(here[0]) + sign if len(here) else -1
    if len(here) and dataset.is_cyclic(column) and len(grid) > 2:
        place %= len(grid)
    if not 0 <= place < len(grid):
        return None, None
    after = row.copy()
    after[column] = grid[place]
    same = np.flatnonzero((dataset.factors == after).all(axis=1))
    return after, dataset.images[same[0]] if len(same) == 1 else None


@pytest.mark.parametrize("factors", [None, ("x", "y"), ("turn",)])
@pytest.mark.parametrize("cyclic", [True, False])
def test_truths_are_those_of_a_thorough_look(factors: tuple[str, ...] | None, cyclic: bool) -> None:
    rng = np.random.default_rng(0)
    kinds = {"x": "ordinal", "y": "ordinal", "turn": "ordinal", "still": "ordinal"}
    table = rng.integers(0, 4, (150, 4)) * [1.0, 10.0, 90.0, 1.0]  # with holes, and with twins
    table[rng.random((150, 4)) < 0.02] = np.nan
    images = rng.integers(0, 256, (150, 8, 8, 1), np.uint8)
    dataset: Dataset = Arrays(
        images=images, factors=table, names=[*kinds], kinds=kinds, allow_missing=True
    )
    dataset.factors[:, 3] = 0
    dataset.spec = tuple(replace(f, cyclic=f.name == "turn") for f in dataset.spec)
    dataset = dataset.with_transitions(factors=factors, cyclic=cyclic)
    loaded_run = LoadedRun(Stepper(), dataset, 1)
    names = [f"{sign}{name}" for name in factors or kinds for sign in "+-"]
    loaded_run.model.actions = tuple(names)
    truths = []
    for index in range(len(dataset)):
        pressed = rng.choice(names, 3).tolist()
        row, expected = dataset.factors[index], []
        for action in pressed:
            row, picture = (None, None) if row is None else thorough_truth(dataset, row, action)
            expected.append(None if picture is None else data_url(picture))
        answer = apply(loaded_run, EncodedImage(loaded_run.model, images[index], index), pressed)
        assert answer.truths == expected
        truths += expected
    assert None in truths
    assert any(truths)


def test_the_table_is_looked_through_once(bars: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    unique = np.unique
    monkeypatch.setattr(np, "unique", lambda x, **how: looked.append(len(x)) or unique(x, **how))
    dataset = bars.with_transitions()
    for loaded_run in (LoadedRun(Stepper(), dataset, 1), LoadedRun(Stepper(), dataset, 2)):
        apply(loaded_run, bar_at(loaded_run, 5), ["+x", "+x", "-x", "+colour"])
    assert looked == [len(bars)] * 3  # once a factor, and once for what is held


def test_continuous_factors_have_no_steps() -> None:
    pendulum = Pendulum(size=32)
    assert factor_grid(pendulum) is None


def test_the_likeliest_action_comes_first(loaded_run: LoadedRun) -> None:
    answer = retrieve(loaded_run, bar_at(loaded_run, 3), bar_at(loaded_run, 4))
    assert [(a.id, a.probability) for a in answer.actions] == [
        ("+x", 1.0),
        ("+colour", 0.5),
        ("-x", 0.2),
        ("-colour", 0.1),
    ]


def test_unknown_actions_are_named(loaded_run: LoadedRun) -> None:
    with pytest.raises(UsageError, match=r"there is no action '\+xx'\. Did you mean '\+x'\?"):
        apply(loaded_run, loaded_run.encode("t-0", Uploads().read), ["+xx"])
