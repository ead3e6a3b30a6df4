from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from disentwine.data.published import omniglot
from disentwine.data.published.omniglot import Omniglot
from disentwine.errors import DataError, UsageError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "omniglot/images_background.npz").is_file(),
    reason="needs omniglot/ in the folder that DISENTWINE_DATA names",
)
COUNTS = {"images_background": 3, "images_evaluation": 2}


@pytest.fixture
def drawings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """Five characters instead of 1,623; paper is true."""
    monkeypatch.setattr(omniglot, "CHARACTERS", COUNTS)
    monkeypatch.setattr(omniglot, "TRAIN_AND_VALIDATION", 70)
    monkeypatch.setattr(omniglot, "VALIDATION", 10)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    return {name: rng.random((n, 20, 105, 105)) > 0.1 for name, n in COUNTS.items()}


def write_arrays(folder: Path, drawings: dict[str, np.ndarray]) -> None:
    for name, images in drawings.items():
        np.savez_compressed(folder / f"{name}.npz", images=images)


def write_zips(folder: Path, drawings: dict[str, np.ndarray]) -> None:
    for name, images in drawings.items():
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            for i, j in reversed(list(np.ndindex(*images.shape[:2]))):
                content = io.BytesIO()
                Image.fromarray(images[i, j]).save(content, "PNG")
                archive.writestr(f"{name}/Greek/character{i:02}/{j:04}.png", content.getvalue())


def test_pictures_and_arrays_hold_the_same(drawings: dict[str, np.ndarray], tmp_path: Path) -> None:
    write_arrays(tmp_path, drawings)
    from_arrays = Omniglot()
    for name in COUNTS:
        (tmp_path / f"{name}.npz").unlink()
    write_zips(tmp_path, drawings)
    from_zips = Omniglot()
    assert np.array_equal(from_arrays.images, from_zips.images)
    assert from_zips.images.shape == (100, 28, 28, 1)
    ink = 255 * (1 - np.concatenate(list(drawings.values())).reshape(100, 105, 105).mean((1, 2)))
    assert np.abs(from_zips.images.mean((1, 2, 3)) - ink).max() < 0.5
    assert from_zips.column("character").tolist() == np.repeat(range(5), 20).tolist()


def test_the_test_images_are_the_same_for_every_seed(
    drawings: dict[str, np.ndarray], tmp_path: Path
) -> None:
    write_arrays(tmp_path, drawings)
    a, b = Omniglot(seed=0, binarise="dynamic"), Omniglot(seed=1, binarise="dynamic")
    assert np.array_equal(a.split["test"], b.split["test"])
    assert not np.array_equal(a.split["validation"], b.split["validation"])
    assert {name: len(part) for name, part in a.split.items()} == {
        "train": 60,
        "validation": 10,
        "test": 30,
    }
    assert sorted(np.concatenate(list(a.split.values()))) == list(range(100))
    assert set(np.unique(a.images[a.split["test"]])) == {0, 255}
    assert np.array_equal(a.images[a.split["test"]], b.images[b.split["test"]])


def test_burdas_file(drawings: dict[str, np.ndarray], tmp_path: Path) -> None:
    from scipy.io import savemat

    images = np.random.default_rng(0).random((30, 28, 28))
    flat = images.transpose(0, 2, 1).reshape(30, 784).T  # columns, as MATLAB has them
    alphabets = np.eye(50)[np.arange(30) % 3].T
    characters = (1 + np.arange(30) % 5)[None]
    content = {
        "data": flat[:, :20],
        "target": alphabets[:, :20],
        "targetchar": characters[:, :20],
        "testdata": flat[:, 20:],
        "testtarget": alphabets[:, 20:],
        "testtargetchar": characters[:, 20:],
    }
    savemat(tmp_path / "chardata.mat", content)
    data = Omniglot(source="burda")
    assert np.array_equal(data.images[..., 0], np.rint(255 * images).astype(np.uint8))
    assert data.split["test"].tolist() == list(range(20, 30))
    assert len(np.unique(data.column("character"))) == 15
    assert data.column("character")[0] == data.column("character")[15]
    with pytest.raises(UsageError, match="28x28"):
        Omniglot(source="burda", size=32)


def test_missing_and_damaged_files_are_named(
    drawings: dict[str, np.ndarray], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"images_background\.zip.*brendenlake"):
        Omniglot()
    with pytest.raises(DataError, match=r"chardata\.mat.*yburda"):
        Omniglot(source="burda")
    write_zips(tmp_path, drawings)
    path = tmp_path / "images_evaluation.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    with pytest.raises(DataError, match=r"images_evaluation\.zip.*fetch it again"):
        Omniglot()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images_evaluation/a/b/huge.png", bytes(200_000))
    with pytest.raises(DataError, match=r"too large.*fetch it again"):
        Omniglot()
    write_zips(tmp_path, {"images_evaluation": drawings["images_evaluation"][:1]})
    with pytest.raises(DataError, match=r"20 drawings, not 40"):
        Omniglot()


@real
def test_the_published_drawings() -> None:
    data = Omniglot()
    assert data.images.shape == (32_460, 28, 28, 1)
    assert len(np.unique(data.column("character"))) == 1623
    assert {name: len(part) for name, part in data.split.items()} == {
        "train": 23_000,
        "validation": 1_345,
        "test": 8_115,
    }
    # Drawings of one character are more alike than those of different ones.
    pixels = data.images[:400].reshape(400, -1) / 255
    pixels = pixels - pixels.mean(axis=0)
    likeness = np.corrcoef(pixels)
    same = data.column("character")[:400, None] == data.column("character")[None, :400]
    off_diagonal = ~np.eye(400, dtype=bool)
    assert likeness[same & off_diagonal].mean() > likeness[~same].mean() + 0.05
