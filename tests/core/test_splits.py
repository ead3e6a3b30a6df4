"""Splits are disjoint, complete and the same on every machine; subsets are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.core.dataset import (
    display_order,
    evenly_spaced,
    random_split,
    random_subset,
    tenths,
)


@pytest.mark.parametrize(("n", "test", "validation"), [(10, 3, 2), (1, 0, 0), (7, 7, 0), (0, 0, 0)])
def test_a_split_is_disjoint_complete_and_sorted(n: int, test: int, validation: int) -> None:
    split = random_split(n, test=test, validation=validation, seed=0)
    assert (len(split["test"]), len(split["validation"])) == (test, validation)
    assert sorted(np.concatenate(list(split.values()))) == list(range(n))
    for indices in split.values():
        assert indices.dtype == np.int64
        assert (np.diff(indices) > 0).all()


def test_the_seed_decides_the_split() -> None:
    first, again, other = (
        random_split(100, test=20, validation=10, seed=seed)["test"] for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_tenth_each_and_at_most_ten_thousand_for_validation() -> None:
    assert {name: len(part) for name, part in tenths(95, seed=0).items()} == {
        "train": 77,
        "validation": 9,
        "test": 9,
    }
    assert len(tenths(200_000, seed=0)["validation"]) == 10_000


@pytest.mark.parametrize("subset", [evenly_spaced, random_subset])
def test_a_subset_is_sorted_without_repetition_and_no_larger_than_asked(subset) -> None:
    indices = np.arange(5, 105, 2)
    for limit in (1, 7, 49):
        chosen = subset(indices, limit)
        assert len(chosen) == limit
        assert np.isin(chosen, indices).all()
        assert (np.diff(chosen) > 0).all()
        assert np.array_equal(subset(indices, limit), chosen)
    assert np.array_equal(subset(indices, 50), indices)


def test_evenly_spaced_indices_reach_both_ends() -> None:
    assert evenly_spaced(np.arange(1000), 5)[[0, -1]].tolist() == [0, 999]


def test_the_first_part_with_images_is_displayed() -> None:
    none, some = np.zeros(0, np.int64), np.arange(3)
    assert sorted(display_order({"test": none, "validation": some, "train": some + 9})) == [0, 1, 2]
    assert sorted(display_order({"test": none, "validation": none, "train": some + 9})) == [
        9,
        10,
        11,
    ]
    assert len(display_order({"test": none, "validation": none, "train": none})) == 0
