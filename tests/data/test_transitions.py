"""Pairs that differ by one step of one factor."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from disentwine.core.dataset import Dataset, Factor, random_split
from disentwine.data import Arrays, DSprites, Pendulum, Shapes3D, transitions
from disentwine.data.factor_grid import FactorGrid
from disentwine.data.lazy_images import every_combination
from disentwine.errors import DataError, UsageError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "dsprites/dsprites_downsampled.npz").is_file(),
    reason="needs dsprites/ in the folder that DISENTWINE_DATA names",
)


class Grid(Dataset):
    """A size that ends, an angle that goes round and a switch, in shuffled order."""

    spec = (
        Factor("size", "ordinal"),
        Factor("angle", "ordinal", cyclic=True),
        Factor("switch", "binary", cyclic=True),
    )

    def __init__(self) -> None:
        rows = every_combination([0.5, 0.7, 1.5], range(0, 360, 60), [0, 1])
        self.factors = np.random.default_rng(1).permutation(rows)
        self.images = np.arange(len(rows), dtype=np.uint8)[:, None, None, None]
        self.split = random_split(len(rows), test=9, validation=8, seed=0)


def brute_force(dataset: Dataset, part: str, *, cyclic: bool) -> set[tuple[int, int, int]]:
    """Every pair of a part, one by one."""
    levels = [np.unique(column) for column in dataset.factors.T]
    position = np.stack(
        [np.searchsorted(v, c) for v, c in zip(levels, dataset.factors.T, strict=True)], axis=1
    )
    found = set()
    for x in dataset.split[part]:
        for y in dataset.split[part]:
            steps = position[y] - position[x]
            (moved,) = np.nonzero(steps)
            if len(moved) != 1:
                continue
            factor, step, size = moved[0], steps[moved[0]], len(levels[moved[0]])
            round_about = cyclic and dataset.spec[factor].cyclic and size > 2
            for action, direction in ((2 * factor, 1), (2 * factor + 1, -1)):
                if step == direction or (round_about and (step - direction) % size == 0):
                    found.add((int(x), int(y), int(action)))
    return found


@pytest.mark.parametrize("cyclic", [True, False])
def test_pairs_are_all_that_there_are(cyclic):
    dataset = Grid()
    steps = transitions(dataset, cyclic=cyclic)
    assert steps.actions == ("+size", "-size", "+angle", "-angle", "+switch", "-switch")
    assert steps.factor_of_action.tolist() == [0, 0, 1, 1, 2, 2]
    assert steps.direction_of_action.tolist() == [1, -1, 1, -1, 1, -1]
    for part, table in steps.pairs.items():
        assert table.dtype == np.int64
        rows = [tuple(row) for row in table.tolist()]
        assert len(rows) == len(set(rows))
        assert set(rows) == brute_force(dataset, part, cyclic=cyclic)


def test_a_data_set_may_say_what_its_actions_are():
    dataset = Grid()
    for options in ({"cyclic": False}, {"factors": ("angle", "size")}):
        said, asked = (
            transitions(dataset.with_transitions(**options)),
            transitions(dataset, **options),
        )
        assert said.actions == asked.actions
        assert said.dataset.action_spec == asked.dataset.action_spec != dataset.action_spec
        for part, table in said.pairs.items():
            np.testing.assert_array_equal(table, asked.pairs[part])
    assert transitions(dataset).dataset is dataset


def test_factors_may_be_held_that_do_not_act():
    dataset = Grid()
    everything = transitions(dataset)
    some = transitions(dataset, factors=("angle",), fixed=("size", "switch"))
    assert some.actions == ("+angle", "-angle")
    for part, table in some.pairs.items():
        same = everything.pairs[part]
        expected = same[everything.factor_of_action[same[:, 2]] == 1]
        found = {(x, y, 2 + action) for x, y, action in table.tolist()}
        assert found == set(map(tuple, expected.tolist()))
    free = transitions(dataset, factors=("angle",))
    x, y, _ = free.pairs["train"].T
    assert (dataset.factors[x, 0] != dataset.factors[y, 0]).any(), "what is not held may differ"
    steps = FactorGrid(some.dataset)
    for image in range(0, len(dataset), 7):
        assert steps.matching(dataset.factors[image]).tolist() == [image]
    assert len(steps.matching(np.array([99.0, 0.0, 0.0]))) == 0
    for factors in ("size", ()):
        with pytest.raises(UsageError, match=r"in a list, such as \['size'\]; got"):
            dataset.with_transitions(factors=factors)
    with pytest.raises(UsageError, match="fixed: size is also in `factors`"):
        transitions(dataset, fixed=("size",))
    with pytest.raises(UsageError, match="'colour'"):
        transitions(dataset, factors=("size",), fixed=("colour",))


def test_test_images_are_unseen():
    steps = transitions(Shapes3D(hues=6, scales=2, orientations=3))
    for part, table in steps.pairs.items():
        assert len(table) > 50
        assert np.isin(table[:, :2], steps.dataset.split[part]).all()


def test_a_seed_gives_the_same_order_and_another_seed_another():
    dataset = Grid()
    first, again, other = (transitions(dataset, seed=seed).pairs["train"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert sorted(first.tolist()) == sorted(other.tolist())
    some = transitions(dataset, limit=7).pairs["train"]
    np.testing.assert_array_equal(some, first[:7])


def test_batches_are_the_images_of_the_pairs():
    steps = transitions(Grid())
    table = steps.pairs["train"][:5]
    x, y, action = steps.batch(table)
    np.testing.assert_array_equal(x.ravel(), table[:, 0])
    np.testing.assert_array_equal(y.ravel(), table[:, 1])
    np.testing.assert_array_equal(action, table[:, 2])


def faces(n: int = 400) -> Arrays:
    """Three attributes, each combination on many faces."""
    attributes = np.random.default_rng(0).integers(0, 2, (n, 3))
    return Arrays(
        images=np.zeros((n, 4, 4, 1), np.uint8),
        factors=attributes,
        names=["smile", "beard", "hat"],
        kinds={"smile": "binary", "beard": "binary", "hat": "binary"},
    )


def test_attributes_are_flipped_and_partners_drawn_among_all_that_fit():
    dataset = faces()
    steps = transitions(dataset)
    table = steps.pairs["train"]
    difference = dataset.factors[table[:, 1]] - dataset.factors[table[:, 0]]
    expected = np.zeros_like(difference)
    expected[np.arange(len(table)), steps.factor_of_action[table[:, 2]]] = (
        steps.direction_of_action[table[:, 2]]
    )
    np.testing.assert_array_equal(difference, expected)
    # With some 35 faces of each combination, a fixed partner would leave almost all of them unused.
    assert len(np.unique(table[:, 1])) > 0.8 * len(dataset.split["train"])
    assert len(table) == 3 * len(dataset.split["train"])


def test_factors_that_are_not_named_are_free_to_differ():
    dataset = faces()
    steps = transitions(dataset, factors=["beard"])
    assert steps.actions == ("+beard", "-beard")
    assert steps.factor_of_action.tolist() == [1, 1]
    table = steps.pairs["train"]
    difference = dataset.factors[table[:, 1]] - dataset.factors[table[:, 0]]
    assert (np.abs(difference[:, 1]) == 1).all()
    assert (difference[:, 0] != 0).any()


def test_images_without_labels_make_no_pairs():
    dataset = faces().with_labels(0.5)
    train = transitions(dataset).pairs["train"]
    assert not np.isnan(dataset.factors[train[:, :2].ravel()]).any()
    assert len(train) == pytest.approx(3 * len(dataset.split["train"]) / 2, abs=3)


def test_what_has_no_steps_is_refused():
    with pytest.raises(UsageError, match="continuous"):
        transitions(Pendulum(size=32))
    with pytest.raises(UsageError, match="smile"):
        transitions(faces(), factors=["smil"])
    images = np.zeros((20, 4, 4, 1), np.uint8)
    apart = np.stack([np.arange(20) % 5, np.arange(20) % 5], axis=1)
    kinds = {"a": "ordinal", "b": "ordinal"}
    with pytest.raises(DataError, match="one step"):
        transitions(Arrays(images=images, factors=apart, names=["a", "b"], kinds=kinds))
    with pytest.raises(UsageError, match="no factor"):
        transitions(Arrays(images=images))


@real
def test_published_sprites_take_steps():
    dataset = DSprites(variant="grid")
    steps = transitions(dataset)
    assert len(steps.actions) == 10
    table = steps.pairs["test"]
    assert len(table) > 3000
    changed = dataset.factors[table[:, 0]] != dataset.factors[table[:, 1]]
    assert (changed.sum(axis=1) == 1).all()
    assert (changed.argmax(axis=1) == steps.factor_of_action[table[:, 2]]).all()


def test_copies_of_training_images_are_found_and_other_images_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = import_module("disentwine.data.transitions")  # the package has a function of this name
    monkeypatch.setattr(seen, "CHUNK", 7)  # several parts of either
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    dataset = Arrays(images=images)
    train, test = dataset.split["train"], np.setdiff1d(np.arange(60), dataset.split["train"])
    copies = test[::2]
    dataset.images[copies] = dataset.images[train[: len(copies)]]
    assert np.array_equal(seen.seen_in_training(dataset, test), np.isin(test, copies))
    assert seen.seen_in_training(dataset, train).all()
    assert len(seen.seen_in_training(dataset, test[:0])) == 0
