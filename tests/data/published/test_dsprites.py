"""The dSprites loader, on small files of the published format and on the real ones at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from disentwine.data.published import dsprites
from disentwine.data.published.dsprites import FILES, DSprites, Variant, grid_rows
from disentwine.data.synthetic.shapes2d import GRID, Shapes2D
from disentwine.errors import DataError

N = 30
HAS_REAL = Path(os.environ.get("DISENTWINE_DATA", ""), "dsprites", FILES["grid"]).is_file()
needs_real = pytest.mark.skipif(not HAS_REAL, reason="needs dsprites/ in DISENTWINE_DATA")


def made(variant: Variant) -> dict[str, np.ndarray]:
    """A small file's arrays, as the published one has them."""
    rng = np.random.default_rng(0)
    classes = np.stack([rng.integers(0, len(values), N) for values in GRID], axis=1)
    values = np.stack([grid[classes[:, i]] for i, grid in enumerate(GRID)], axis=1)
    values[:, 0] += 1
    images = rng.integers(0, 2, (N, 64, 64), dtype=np.uint8)
    if variant == "rerender":
        packed = np.packbits(images.reshape(N, -1), axis=1)
        return {"imgs_packed": packed, "latents_classes": classes.astype(np.uint8)}
    if variant == "full":
        values = np.column_stack([np.ones(N), values])
        classes = np.column_stack([np.zeros(N, np.int64), classes])
    metadata = np.array({"title": "dSprites"}, dtype=object)
    return {
        "metadata": metadata,
        "imgs": images,
        "latents_classes": classes,
        "latents_values": values,
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    (tmp_path / "dsprites").mkdir()
    return tmp_path


@pytest.mark.parametrize("variant", FILES)
@pytest.mark.parametrize("place", ["dsprites", "."])
def test_reads_images_and_factors(folder: Path, variant: Variant, place: str) -> None:
    arrays = made(variant)
    np.savez_compressed(folder / place / FILES[variant], **arrays)
    data = DSprites(variant=variant)
    plain = made("grid")
    np.testing.assert_array_equal(data.images[:][..., 0], 255 * plain["imgs"])
    np.testing.assert_array_equal(data.factors, plain["latents_values"] - [1, 0, 0, 0, 0])
    assert data.names == ("shape", "scale", "orientation", "x", "y")
    assert {name: len(indices) for name, indices in data.split.items()} == {
        "train": 24,
        "validation": 3,
        "test": 3,
    }


def test_a_missing_file_is_named_and_so_are_the_variants_at_hand(folder: Path) -> None:
    np.savez(folder / "dsprites" / FILES["random"], **made("random"))
    with pytest.raises(DataError) as caught:
        DSprites()
    message = str(caught.value)
    for part in (
        FILES["full"],
        str(folder),
        "variant=random",
        "shapes2d",
        "github.com",
        "Apache",
    ):
        assert part in message
    assert "variant=grid" not in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"imgs": np.zeros((N, 32, 32), np.uint8)}, "32, 32"),
        ({"imgs": np.zeros((N - 1, 64, 64), np.uint8)}, "29 images, but 30 rows"),
        ({"imgs": np.zeros((N, 64, 64), object)}, "cannot be read"),
        ({"latents_values": np.ones((N, 3))}, "latents_values"),
        ({"latents_values": np.zeros((N, 6))}, "latents_values"),
    ],
)
def test_a_file_that_is_not_dsprites_is_refused_by_name(
    folder: Path, change: dict[str, np.ndarray], message: str
) -> None:
    np.savez(folder / FILES["full"], **(made("full") | change))
    with pytest.raises(DataError, match=message) as caught:
        DSprites()
    assert FILES["full"] in str(caught.value)


def test_a_file_without_images_is_refused_by_name(folder: Path) -> None:
    arrays = made("full")
    del arrays["imgs"]
    np.savez(folder / FILES["full"], **arrays)
    with pytest.raises(DataError, match="no array 'imgs'"):
        DSprites()


def test_a_truncated_file_is_refused_by_name(folder: Path) -> None:
    path = folder / FILES["full"]
    np.savez(path, **made("full"))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataError, match=FILES["full"]):
        DSprites()


def test_a_redrawing_with_fewer_images_than_rows_is_refused_by_name(folder: Path) -> None:
    arrays = made("rerender")
    arrays["imgs_packed"] = arrays["imgs_packed"][1:]
    np.savez(folder / FILES["rerender"], **arrays)
    with pytest.raises(DataError, match=rf"{FILES['rerender']}.*29 images, but 30 rows"):
        DSprites(variant="rerender")


@needs_real
@pytest.mark.parametrize(("variant", "n"), [("grid", 46_080), ("random", 20_000)])
def test_reads_the_real_files(variant: Variant, n: int) -> None:
    data = DSprites(variant=variant)
    assert data.images.shape == (n, 64, 64, 1)
    assert set(np.unique(data.images[:100])) == {0, 255}
    for column, factor, grid in zip(data.factors.T, data.spec, GRID, strict=True):
        assert np.abs(column[:, None] - grid).min(axis=1).max() < 1e-9, factor.name


@needs_real
def test_the_random_real_images_are_as_drawn() -> None:
    data = DSprites(variant="random")
    some = np.arange(0, len(data), 10)
    rendered = Shapes2D().simulate(data.factors[some]).images
    assert (rendered != data.images[some]).sum() <= 3


@needs_real
def test_the_grid_is_every_so_many_rows_of_the_published_file() -> None:
    path = Path(os.environ["DISENTWINE_DATA"], "dsprites", FILES["grid"])
    with np.load(path) as arrays:
        np.testing.assert_array_equal(grid_rows(), arrays["original_dataset_indices"])


def test_the_grid_is_taken_from_the_published_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(folder / FILES["full"], **made("full"))
    monkeypatch.setattr(dsprites, "grid_rows", lambda: np.array([3, 5, 8]))
    everything, grid = DSprites(), DSprites(variant="grid")
    np.testing.assert_array_equal(grid.factors, everything.factors[[3, 5, 8]])
    np.testing.assert_array_equal(grid.images[:], everything.images[[3, 5, 8]])


@pytest.mark.parametrize(
    ("variant", "where"), [("grid", "which also has these images"), ("rerender", "nowhere")]
)
def test_a_file_of_our_own_is_not_said_to_be_published(
    folder: Path, variant: Variant, where: str
) -> None:
    with pytest.raises(DataError, match=where):
        DSprites(variant=variant)
