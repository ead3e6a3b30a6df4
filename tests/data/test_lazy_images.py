"""Packed images must index exactly as the array they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from disentwine.data.lazy_images import PackedImages
from disentwine.errors import UsageError

PIXELS = np.random.default_rng(0).integers(0, 2, (10, 64, 64), dtype=np.uint8)
ARRAY = (PIXELS * 255)[..., None]
PACKED = PackedImages.pack([PIXELS[:7], PIXELS[7:]], n=10)


@pytest.mark.parametrize(
    "indices",
    [
        3,
        -1,
        np.int64(2),
        slice(2, 5),
        slice(None, None, -3),
        [1, 1, 9],
        np.array([], dtype=np.int64),
        np.array([[0, 1], [2, 3]]),
        np.arange(10) % 3 == 0,
    ],
    ids=str,
)
def test_indexes_as_the_array_does(indices: object) -> None:
    got = PACKED[indices]
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, ARRAY[indices])  # type: ignore[call-overload]


def test_shape_and_length_are_those_of_the_array() -> None:
    assert PACKED.shape == ARRAY.shape
    assert PACKED.ndim == ARRAY.ndim
    assert len(PACKED) == 10
    assert PACKED.bits.nbytes * 8 == ARRAY.nbytes


def test_iterates_and_ends() -> None:
    assert sum(1 for _ in PACKED) == 10


def test_what_was_returned_can_be_changed_without_changing_the_images() -> None:
    PACKED[0][:] = 7
    np.testing.assert_array_equal(PACKED[0], ARRAY[0])


def test_out_of_range_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        PACKED[10]


def test_a_pixel_index_is_refused_rather_than_misread() -> None:
    with pytest.raises(UsageError, match="by image only"):
        PACKED[0, 1]


@pytest.mark.parametrize("bits", [np.zeros((2, 511), np.uint8), np.zeros((2, 512), np.int64)])
def test_refuses_what_is_not_packed(bits: np.ndarray) -> None:
    with pytest.raises(ValueError, match="packed 64x64"):
        PackedImages(bits)


@pytest.mark.parametrize("n", [9, 11])
def test_refuses_another_number_of_images(n: int) -> None:
    with pytest.raises(ValueError, match=str(n)):
        PackedImages.pack([PIXELS], n=n)


def test_refuses_images_of_another_size() -> None:
    with pytest.raises(ValueError, match="64x64"):
        PackedImages.pack([PIXELS[:, :32]], n=10)
