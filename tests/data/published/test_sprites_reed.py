"""The loader of the sprites of Reed et al., on random characters."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from disentwine.data import SpritesReed
from disentwine.data.published import sprites_reed
from disentwine.errors import DataError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "sprites_reed/sprites_0.mat").is_file(),
    reason="needs sprites_reed/ in the folder that DISENTWINE_DATA names",
)


CHARACTERS = 4
LENGTHS = [7] * 4 + [8] * 4 + [9] * 4 + [6] * 4 + [13] * 4 + [6]
PARTS = {"train": [1, 4], "valid": [2], "test": [3]}


@pytest.fixture
def characters(tmp_path, monkeypatch):
    """Frames in three colours, for each of four characters."""
    monkeypatch.setattr(sprites_reed, "CHARACTERS", CHARACTERS)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    (tmp_path / "sprites_reed").mkdir()
    rng = np.random.default_rng(0)
    palette = np.array([[0, 0, 0], [255, 20, 3], [7, 80, 90]], np.uint8)
    pixels = rng.integers(0, 3, (CHARACTERS * sum(LENGTHS), 60, 60)).astype(np.uint16)
    attributes = rng.integers(0, 2, (CHARACTERS, 7))
    return tmp_path / "sprites_reed", pixels, palette, attributes


def write_packed(folder, pixels, palette, attributes):
    n = sum(LENGTHS)
    np.savez(
        folder / "sprites_60x60_indexed.npz",
        index=pixels,
        palette=palette,
        attributes=np.repeat(attributes, n, axis=0).astype(np.uint8),
        character=np.repeat(np.arange(CHARACTERS), n).astype(np.uint16),
        animation=np.tile(np.repeat(np.arange(21), LENGTHS), CHARACTERS).astype(np.uint8),
        frame=np.tile(np.concatenate([np.arange(m) for m in LENGTHS]), CHARACTERS).astype(np.uint8),
        **{f"{part}_characters_1based": np.array(ids) for part, ids in PARTS.items()},
    )


def write_published(folder, pixels, palette, attributes):
    from scipy.io import savemat

    keys = {"train": "trainidx", "valid": "validx", "test": "testidx"}
    savemat(folder / "sprites_splits.mat", {keys[part]: ids for part, ids in PARTS.items()})
    colours = palette[pixels].transpose(0, 3, 2, 1).reshape(CHARACTERS, sum(LENGTHS), -1) / 255
    for i in range(CHARACTERS):
        with h5py.File(folder / f"sprites_{i}.mat", "w") as file:
            file["labels"] = attributes[i][:, None].astype(float)
            references = file.create_dataset("sprites", (21, 1), h5py.ref_dtype)
            for j, frames in enumerate(np.split(colours[i], np.cumsum(LENGTHS)[:-1])):
                file[f"#refs#/{j}"] = frames
                references[j, 0] = file[f"#refs#/{j}"].ref


@pytest.mark.parametrize("write", [write_packed, write_published])
def test_frames_are_read_alike_from_either_file(characters, write):
    write(*characters)
    _, pixels, palette, attributes = characters
    dataset = SpritesReed()
    np.testing.assert_array_equal(dataset.images[:], palette[pixels])
    np.testing.assert_array_equal(dataset.factors[:, :7], np.repeat(attributes, 178, axis=0))
    action, rotation, frame = dataset.factors[178 + 7 + 7 + 3, 7:]
    assert (action, rotation, frame) == (0, 2, 3)
    assert dataset.factors[-1, 7:].tolist() == [5, 2, 5]
    whose = {part: np.unique(rows // 178).tolist() for part, rows in dataset.split.items()}
    assert whose == {"train": [0, 3], "validation": [1], "test": [2]}


def test_damaged_and_missing_characters_are_named(characters):
    folder, *_ = characters
    with pytest.raises(DataError, match=r"sprites_0\.mat.*scottreed"):
        SpritesReed()
    write_published(*characters)
    (folder / "sprites_2.mat").write_bytes(b"no character")
    with pytest.raises(DataError, match="sprites_2"):
        SpritesReed()
    (folder / "sprites_2.mat").unlink()
    with pytest.raises(DataError, match="sprites_2"):
        SpritesReed()


@real
def test_packed_frames_are_the_published_ones():
    folder = Path(os.environ["DISENTWINE_DATA"], "sprites_reed")
    animations, labels = sprites_reed.read_character(folder / "sprites_5.mat")
    assert [len(frames) for frames in animations] == LENGTHS
    assert labels.tolist() == [0, 0, 0, 0, 1, 0, 1]
