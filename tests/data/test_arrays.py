from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from disentwine.data.arrays import Arrays
from disentwine.errors import DataError, UsageError

IMAGES = np.zeros((20, 8, 8, 3), np.uint8)
FACTORS = np.stack([np.linspace(0, 1, 20), np.arange(20) % 2, np.arange(20) % 3], axis=1)
NAMES = ("size", "lit", "shape")


def made(**changes: Any) -> Arrays:
    return Arrays(**{"images": IMAGES, "factors": FACTORS, "names": NAMES, **changes})


def test_arrays_become_a_data_set() -> None:
    data = made(kinds={"shape": "categorical"}, edges=[("size", "shape")], seed=3)
    assert data.names == NAMES
    assert [factor.kind for factor in data.spec] == ["continuous", "binary", "categorical"]
    assert data.spec[2].values == ("0", "1", "2")
    np.testing.assert_array_equal(data.factors, FACTORS)
    assert data.images is IMAGES
    assert data.graph is not None
    assert set(data.graph.nodes) == set(NAMES)
    assert (data.seed, data.test, data.validation) == (3, 0.2, 0.1)


def test_the_split_is_disjoint_whole_and_seeded() -> None:
    split = made(seed=1).split
    assert {name: len(part) for name, part in split.items()} == {
        "train": 14,
        "validation": 2,
        "test": 4,
    }
    assert sorted(np.concatenate(list(split.values()))) == list(range(20))
    assert (split["test"] == made(seed=1).split["test"]).all()
    assert (split["test"] != made(seed=2).split["test"]).any()


def test_factors_and_names_may_be_left_out() -> None:
    assert Arrays(images=IMAGES).factors.shape == (20, 0)
    assert Arrays(images=IMAGES, factors=FACTORS[:, :1].tolist()).names == ("factor_0",)


@pytest.mark.parametrize(
    ("images", "remedy"),
    [
        (IMAGES.astype(np.float32), r"float32 from 0 to 0.*\(images \* 255\)\.round\(\)"),
        (IMAGES.astype(np.float64) - 1, "from -1 to -1.*scale them"),
        (IMAGES.astype(np.int64), r"int64.*astype\('uint8'\)"),
        (IMAGES.transpose(0, 3, 1, 2), r"images\.transpose\(0, 2, 3, 1\)"),
        (IMAGES[..., 0], r"images\[\.\.\., None\]"),
        (IMAGES[0, 0], r"not \(n, height, width, channels\)"),
        (np.zeros((20, 8, 8, 4), np.uint8), "1 or 3"),
    ],
)
def test_wrong_images_say_how_to_convert_them(images: np.ndarray, remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        Arrays(images=images)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"factors": FACTORS[:5]}, "a row for each of 20 images"),
        ({"factors": FACTORS[:, 0]}, r"\(20,\) is not \(n, k\)"),
        ({"factors": [["a"] * 3] * 20}, "not a table of numbers"),
        ({"names": ("a", "b")}, "2 different names for 3 columns"),
        ({"names": ("a", "b", "a")}, "2 different names for 3 columns"),
        ({"kinds": {"shap": "ordinal"}}, "Did you mean 'shape'"),
        ({"edges": [("size", "light")]}, "no factor 'light'"),
        ({"edges": [("size", "lit"), ("lit", "size")]}, "a cycle size -> lit -> size"),
        ({"edges": [("size", "size")]}, "a cycle size -> size"),
        ({"edges": ["size"]}, "not a pair"),
        ({"test": 0.9, "validation": 0.1}, "leave images for training"),
        ({"test": 0.5, "validation": 0.49}, "none of 20 images is left"),
        ({"test": -0.1}, "fractions of at least 0"),
        ({"test": float("nan")}, "fractions of at least 0"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        made(**changes)


def test_wrong_values_come_in_one_report() -> None:
    factors = FACTORS.copy()
    factors[3, 0], factors[5, 1], factors[:, 2] = np.nan, np.inf, 7
    with pytest.raises(DataError) as caught:
        made(factors=factors)
    assert [line.strip() for line in str(caught.value).splitlines()] == [
        "the arrays: 3 problems",
        "row 3, column 'size': no label; fill it in, or pass allow_missing=True",
        "row 5, column 'lit': not a finite number",
        "column 'shape': constant, always 7; remove the column",
    ]


def test_missing_labels_can_be_allowed() -> None:
    factors = FACTORS.copy()
    factors[3, 0] = np.nan
    assert np.isnan(made(factors=factors, allow_missing=True).factors[3, 0])


def test_a_few_images_are_too_few() -> None:
    with pytest.raises(DataError, match="only 9; at least 10"):
        Arrays(images=IMAGES[:9])


def test_a_misspelt_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="'ordnal'; choose from"):
        Arrays(images=IMAGES, factors=FACTORS, names=NAMES, kinds={"lit": "ordnal"})  # type: ignore[dict-item]
