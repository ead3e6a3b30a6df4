"""Which images a model is evaluated on."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.contracts.dataset import Dataset, Factor
from disentwine.data.splits import sampled, spread
from disentwine.errors import DataError
from disentwine.metrics.sap import sap
from disentwine.report.evaluation import LIMIT, evaluate_baseline, held_out

SIDES = (25, 20, 10, 4)


class SortedGrid(Dataset):
    """Every combination once, in order, all of them held out."""

    def __init__(self, *, train: int = 0, validation: int = 0) -> None:
        axes = np.meshgrid(*map(np.arange, SIDES), indexing="ij")
        self.factors = np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)
        n = len(self.factors)
        self.images = np.zeros((n, 1, 1, 1), np.uint8)
        self.spec = tuple(Factor(name, "ordinal") for name in "abcd")
        parts = np.split(np.arange(n), [train, train + validation])
        self.split = dict(zip(("train", "validation", "test"), parts, strict=True))


def test_they_are_of_the_split_once_each_and_always_the_same() -> None:
    data = SortedGrid(train=2_000, validation=3_000)
    name, indices = held_out(data, LIMIT)
    assert (name, len(indices)) == ("test", LIMIT)
    assert np.isin(indices, data.split["test"]).all()
    assert (np.diff(indices) > 0).all()
    assert (held_out(data, LIMIT)[1] == indices).all()


def test_a_split_within_the_limit_is_taken_whole() -> None:
    data = SortedGrid(train=15_000)
    assert (held_out(data, LIMIT)[1] == data.split["test"]).all()


def test_validation_stands_in_for_an_empty_test_split() -> None:
    name, indices = held_out(SortedGrid(train=14_000, validation=6_000), LIMIT)
    assert (name, len(indices)) == ("validation", LIMIT)
    with pytest.raises(DataError, match="splits are empty"):
        held_out(SortedGrid(train=20_000), LIMIT)


def test_a_perfect_code_of_a_sorted_grid_is_scored_as_on_all_of_it() -> None:
    data = SortedGrid()
    found = evaluate_baseline("ground-truth", data, ["sap"])
    whole = sap(data.factors, data.factors).value
    assert found.scores[0].value == pytest.approx(whole, abs=0.05)
    # What a stride answers, which ties the last factor to the place in the grid.
    strided = data.factors[spread(data.split["test"], LIMIT)]
    assert sap(strided, strided).value < whole - 0.3


def test_a_sample_keeps_the_order_and_the_type_of_indices() -> None:
    indices = np.arange(1_000) * 3
    chosen = sampled(indices, 10)
    assert chosen.dtype == indices.dtype
    assert np.isin(chosen, indices).all()
    assert (np.diff(chosen) > 0).all()
    assert (sampled(indices, 1_000) == indices).all()
