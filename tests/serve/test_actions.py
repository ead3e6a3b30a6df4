"""Actions, on a model that knows them exactly: a bar that steps to the side."""

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.contracts.model import Batch, Losses, Model
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.serve.actions import actions_of, apply, retrieve, step
from disentwine.serve.opened import Opened, Seen
from disentwine.serve.pictures import data_url
from disentwine.serve.uploads import Uploads

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
def opened(bars: Arrays) -> Opened:
    return Opened(Stepper(), bars, 1)


def seen_at(opened: Opened, place: int) -> Seen:
    """A bar of the first colour."""
    assert opened.dataset is not None
    return Seen(opened.model, opened.dataset.images[2 * place], 2 * place)


def test_actions_are_listed(opened: Opened) -> None:
    assert next((a.id, a.label) for a in actions_of(opened)) == ("+x", "+ x")
    assert len(actions_of(opened)) == 4


def test_pictures_are_those_of_the_data(opened: Opened) -> None:
    answer = apply(opened, seen_at(opened, 5), ["+x", "+x", "-x"])
    assert answer.pictures == answer.truths
    assert opened.dataset is not None
    assert answer.pictures == [data_url(opened.dataset.images[2 * i]) for i in (6, 7, 6)]


def test_pressing_again_computes_one_more(opened: Opened) -> None:
    seen = seen_at(opened, 5)
    first = apply(opened, seen, ["+x", "+x"]).pictures
    again = apply(opened, seen, ["+x", "+x", "+x"]).pictures
    assert again[:2] == first
    assert opened.model.asked == 3


def test_a_step_out_of_the_data_has_no_truth(opened: Opened) -> None:
    answer = apply(opened, seen_at(opened, PLACES - 2), ["+x", "+x", "-x"])
    assert answer.truths is not None
    assert [truth is None for truth in answer.truths] == [False, True, True]
    sent = apply(opened, Seen(opened.model, np.zeros((8, PLACES, 1), np.uint8)), ["+x"])
    assert sent.truths is None


def test_grids_step_by_the_values_that_occur() -> None:
    tens = Arrays(
        images=np.zeros((30, 8, 8, 1), np.uint8),
        factors=np.repeat([[10.0], [20.0], [40.0]], 10, axis=0),
        names=["size"],
        kinds={"size": "ordinal"},
    )
    after = step(tens, np.array([20.0]), "+size")
    assert after is not None
    assert after.tolist() == [40.0]
    assert step(tens, np.array([40.0]), "+size") is None
    assert step(tens, np.array([20.0]), "+weight") is None


def test_the_likeliest_action_comes_first(opened: Opened) -> None:
    answer = retrieve(opened, seen_at(opened, 3), seen_at(opened, 4))
    assert [(a.id, a.probability) for a in answer.actions] == [
        ("+x", 1.0),
        ("+colour", 0.5),
        ("-x", 0.2),
        ("-colour", 0.1),
    ]


def test_unknown_actions_are_named(opened: Opened) -> None:
    with pytest.raises(UsageError, match=r"there is no action '\+xx'\. Did you mean '\+x'\?"):
        apply(opened, opened.look("t-0", Uploads().read), ["+xx"])
