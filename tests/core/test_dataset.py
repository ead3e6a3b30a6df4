"""What every dataset offers: columns, labels of a fraction, and actions between images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from disentwine.core.dataset import ActionSpec, Transitions, column_index
from disentwine.data import Arrays
from disentwine.errors import UsageError


@pytest.fixture
def dataset() -> Arrays:
    rng = np.random.default_rng(0)
    return Arrays(
        images=rng.integers(0, 256, (50, 4, 6, 1), dtype=np.uint8),
        factors=rng.normal(size=(50, 2)),
        names=("angle", "light"),
    )


def labelled(dataset: Any, split: str) -> Any:
    return ~np.isnan(dataset.factors[dataset.split[split]]).all(axis=1)


def test_a_dataset_knows_its_shape_and_columns(dataset: Arrays) -> None:
    assert len(dataset) == 50
    assert dataset.image_shape == (4, 6, 1)
    assert dataset.names == ("angle", "light")
    assert np.array_equal(dataset.column("light"), dataset.factors[:, 1])
    assert repr(dataset) == "Arrays(50 images of 4x6x1; angle, light)"


def test_an_unknown_column_is_answered_with_the_nearest(dataset: Arrays) -> None:
    with pytest.raises(UsageError, match=r"no factor 'ligth'.*'light'"):
        dataset.column("ligth")
    with pytest.raises(UsageError, match="there is no action"):
        column_index(("+x",), "+y", kind="action")


def test_a_fraction_keeps_its_labels_and_tests_keep_all(dataset: Arrays) -> None:
    part = dataset.with_labels(0.25)
    assert part.labelled_fraction == 0.25
    assert labelled(part, "train").sum() == round(0.25 * len(dataset.split["train"]))
    assert labelled(part, "test").all()
    assert not np.isnan(dataset.factors).any()
    assert part.images is dataset.images


def test_a_smaller_fraction_is_part_of_a_larger_one(dataset: Arrays) -> None:
    small, large = (labelled(dataset.with_labels(share), "train") for share in (0.2, 0.6))
    assert large[small].all()
    assert large.sum() > small.sum()


def test_one_image_keeps_its_label_at_least(dataset: Arrays) -> None:
    assert labelled(dataset.with_labels(0.001), "train").sum() == 1


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_impossible_fractions_are_refused(dataset: Arrays, share: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        dataset.with_labels(share)


def test_other_actions_leave_the_dataset_as_it_is(dataset: Arrays) -> None:
    other = dataset.with_transitions(factors=("angle",), cyclic=False, fixed=("light",))
    assert other.action_spec == ActionSpec(("angle",), False, ("light",))
    assert dataset.action_spec == ActionSpec()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"factors": "angle"}, "name factors in a list"),
        ({"factors": ()}, "name factors in a list"),
        ({"fixed": "angle"}, "name factors in a list"),
        ({"factors": ("angel",)}, "no factor 'angel'"),
        ({"factors": ("angle",), "fixed": ("angle",)}, "angle is also in `factors`"),
        ({"fixed": ("light",)}, "light is also in `factors`"),
    ],
)
def test_impossible_actions_are_refused(
    dataset: Arrays, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        dataset.with_transitions(**options)


def test_a_batch_of_pairs_is_read_from_the_dataset(dataset: Arrays) -> None:
    table = np.array([[3, 4, 0], [5, 2, 1]])
    pairs = Transitions(
        dataset, ("+a", "-a"), {"train": table}, np.array([0, 0]), np.array([1, -1])
    )
    x, y, action = pairs.batch(table[1:])
    assert np.array_equal(x, dataset.images[[5]])
    assert np.array_equal(y, dataset.images[[2]])
    assert action.tolist() == [1]
    assert repr(pairs) == "Transitions(+a -a; train 2)"
