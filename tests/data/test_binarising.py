"""Black and white images: drawn with the right probabilities, once or in every batch."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from disentwine.data import MNIST, binarized_mnist
from disentwine.data.arrays import Arrays
from disentwine.data.binarising import binarised
from disentwine.data.binarized_mnist import BinarizedMNIST
from disentwine.data.resizing import shrink
from disentwine.errors import DataError, UsageError
from disentwine.training.sampling import BatchSource
from disentwine.training.trainer import fixed_noise

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "mnist/train-images-idx3-ubyte.gz").is_file()
    or not Path(os.environ["DISENTWINE_DATA"], "binarized_mnist").is_dir(),
    reason="needs mnist/ and binarized_mnist/ in the folder that DISENTWINE_DATA names",
)
LEVELS = np.array([0, 1, 64, 128, 254, 255], np.uint8)
SPLIT = {"train": np.arange(4), "validation": np.arange(4, 6), "test": np.arange(6, 10)}


def grey(side: int = 60) -> np.ndarray:
    """Ten images whose columns have each of the levels."""
    return np.tile(LEVELS, (10, side, side // len(LEVELS)))[..., None]


def within_chance(white: np.ndarray, n: int) -> bool:
    """Shares of white are the levels', to 5 standard errors; at black and white exactly."""
    p = LEVELS / 255
    return bool((np.abs(white - p) <= 5 * np.sqrt(p * (1 - p) / n)).all())


def shares(images: np.ndarray) -> np.ndarray:
    return np.array([(images[:, :, i :: len(LEVELS)] > 0).mean() for i in range(len(LEVELS))])


def test_static_images_are_drawn_once_with_the_right_probabilities() -> None:
    drawn = binarised(grey(), SPLIT, how="static")
    assert set(np.unique(drawn)) == {0, 255}
    assert within_chance(shares(drawn), 10 * 60 * 10)
    assert np.array_equal(drawn, binarised(grey(), SPLIT, how="static"))


def test_dynamic_images_are_grey_for_training_and_drawn_elsewhere() -> None:
    drawn, static = (binarised(grey(), SPLIT, how=how) for how in ("dynamic", "static"))  # type: ignore[arg-type]
    assert np.array_equal(drawn[:4], grey()[:4])
    assert np.array_equal(drawn[4:], static[4:])
    assert binarised(images := grey(), SPLIT, how="none") is images


def test_batches_draw_stochastic_pixels_anew_and_repeatably() -> None:
    data = Arrays(images=grey(), test=0.0, validation=0.1)
    plain = BatchSource(data, device=torch.device("cpu")).take(np.arange(10)).x
    data.stochastic = True
    source = BatchSource(data, device=torch.device("cpu"))
    with fixed_noise(0):
        first, second = (source.take(np.arange(10)).x for _ in range(2))
    with fixed_noise(0):
        again = source.take(np.arange(10)).x
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 1.0}
    assert within_chance(shares(first.permute(0, 2, 3, 1).numpy()), 10 * 60 * 10)
    certain = (plain == 0) | (plain == 1)
    assert torch.equal(first[certain], plain[certain])


def test_shrinking_keeps_the_mean_and_whole_areas() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 12, 12), dtype=np.uint8)
    quarter = images.reshape(5, 6, 2, 6, 2).mean(axis=(2, 4))
    assert np.abs(shrink(images, 6).astype(float) - quarter).max() <= 0.5001
    # Areas that do not divide evenly: 12 rows in 5, which cover 2.4 rows each.
    weights = np.array([1, 1, 0.4]) / 2.4
    corner = weights @ images[0, :3, :3] @ weights
    assert abs(float(shrink(images, 5)[0, 0, 0]) - corner) <= 0.5001
    assert np.array_equal(shrink(images, 12), images)
    assert np.array_equal(shrink(images > 99, 12, white=1.0), 255 * (images > 99))
    with pytest.raises(UsageError, match=r"size=13.*1\.\.12"):
        shrink(images, 13)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Sixteen images as text, in the published folder."""
    parts = {"train": ("train", 8), "validation": ("valid", 4), "test": ("test", 4)}
    monkeypatch.setattr(binarized_mnist, "PARTS", parts)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    values = np.random.default_rng(0).integers(0, 2, (16, 784))
    start = 0
    for name, n in parts.values():
        lines = [" ".join(map(str, row)) + " \n" for row in values[start : start + n]]
        (tmp_path / f"binarized_mnist_{name}.amat").write_text("".join(lines))
        start += n
    return values


def test_text_and_matlab_files_hold_the_same(small: np.ndarray, tmp_path: Path) -> None:
    from scipy.io import savemat

    as_text = BinarizedMNIST()
    assert np.array_equal(as_text.images[:].reshape(16, 784), 255 * small)
    assert {name: part.tolist() for name, part in as_text.split.items()} == {
        "train": list(range(8)),
        "validation": list(range(8, 12)),
        "test": list(range(12, 16)),
    }
    for name, rows in (("train", small[:8]), ("valid", small[8:12]), ("test", small[12:])):
        (tmp_path / f"binarized_mnist_{name}.amat").unlink()
        savemat(tmp_path / f"binarized_mnist_{name}.mat", {"X": rows.astype(np.uint8)})
    assert np.array_equal(BinarizedMNIST().images[:], as_text.images[:])


@pytest.mark.parametrize("change", [lambda t: t[:-5], lambda t: t + "0", lambda t: "2" + t[1:]])
def test_damaged_text_is_refused(small: np.ndarray, tmp_path: Path, change: object) -> None:
    path = tmp_path / "binarized_mnist_test.amat"
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(DataError, match=r"test\.amat.*28x28 zeros and ones.*fetch it again"):
        BinarizedMNIST()


def test_a_damaged_matlab_file_is_refused(small: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "binarized_mnist_test.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(DataError, match=r"test\.mat cannot be read.*fetch it again"):
        BinarizedMNIST()


@real
def test_the_published_files() -> None:
    data = BinarizedMNIST()
    assert {name: len(part) for name, part in data.split.items()} == {
        "train": 50_000,
        "validation": 10_000,
        "test": 10_000,
    }
    mean = data.images[data.split["train"]].mean() / 255
    grey_mean = MNIST().images[:60_000].mean() / 255
    assert mean == pytest.approx(grey_mean, abs=0.001)


@real
def test_dynamic_digits_are_drawn_for_scores_and_grey_for_training() -> None:
    data, plain = MNIST(binarise="dynamic"), MNIST()
    assert data.stochastic
    assert not plain.stochastic
    assert np.array_equal(data.images[data.split["train"]], plain.images[data.split["train"]])
    assert set(np.unique(data.images[data.split["test"]])) == {0, 255}
