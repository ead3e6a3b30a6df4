"""The loaders of sprites, on characters that are made up."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from disentwine.core.dataset import Simulates
from disentwine.data import SpritesLPC, SpritesReed
from disentwine.data.published import sprites_lpc, sprites_reed
from disentwine.errors import DataError, UsageError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "sprites_reed/sprites_0.mat").is_file(),
    reason="needs sprites_reed/ in the folder that DISENTWINE_DATA names",
)


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """Sheets of random colours in blocks of eight pixels, a third of which is transparent."""
    monkeypatch.setattr(
        sprites_lpc, "SHEETS", dict.fromkeys(sprites_lpc.SHEETS, 1) | {"hair": 2, "body": 3}
    )
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    sheets = {}
    for layer, count in sprites_lpc.SHEETS.items():
        (tmp_path / "sprites_lpc" / "layers" / layer).mkdir(parents=True)
        for i in range(count):
            blocks = rng.integers(0, 256, (168, 104, 4), dtype=np.uint8)
            blocks[..., 3] = rng.choice([0, 128, 129, 255], (168, 104))
            sheet = blocks.repeat(8, axis=0).repeat(8, axis=1)
            path = tmp_path / "sprites_lpc" / "layers" / layer / f"{i}.png"
            Image.fromarray(sheet).save(path, compress_level=1)
            sheets[layer, i] = sheet
    return sheets


def test_layers_are_painted_in_their_order(layers):
    dataset = SpritesLPC()
    assert len(dataset) == 2 * 3 * 5 * 3 * 6
    some = np.random.default_rng(0).choice(len(dataset), 6, replace=False)
    for i, image in zip(some, dataset.images[some], strict=True):
        row = dict(zip(dataset.names, dataset.factors[i].astype(int), strict=True))
        top, left = 64 * (4 * row["action"] + 1 + row["rotation"]), 64 * row["frame"]
        expected = np.zeros((64, 64, 3), np.uint8)
        for layer in ("body", "shoes", "bottomwear", "topwear", "eyes", "hair"):
            tile = layers[layer, row[layer]][top : top + 64, left : left + 64]
            expected[tile[..., 3] > 128] = tile[tile[..., 3] > 128, :3]
        np.testing.assert_array_equal(image, expected)


def test_layers_are_exchanged_by_interventions(layers):
    dataset = SpritesLPC()
    assert isinstance(dataset, Simulates)
    changed = dataset.simulate(dataset.factors[:4], {"hair": 1.0, "frame": lambda frame: 5 - frame})
    for row, image in zip(changed.factors, changed.images, strict=True):
        (same,) = np.flatnonzero((dataset.factors == row).all(axis=1))
        np.testing.assert_array_equal(image, dataset.images[same])
    with pytest.raises(UsageError, match="no body 3"):
        dataset.simulate(dataset.factors[:1], {"body": 3.0})
    with pytest.raises(UsageError, match="columns"):
        dataset.simulate(dataset.factors[:1, :4])
    with pytest.raises(UsageError, match="'frame' in row 0 is nan"):
        dataset.simulate([[*dataset.factors[0, :-1], np.nan]])


def test_damaged_and_missing_layers_are_named(layers, tmp_path):
    hair = tmp_path / "sprites_lpc" / "layers" / "hair" / "1.png"
    Image.new("RGBA", (64, 64)).save(hair)
    with pytest.raises(DataError, match=r"hair/1\.png.*64x64"):
        SpritesLPC()
    hair.write_bytes(b"not an image")
    with pytest.raises(DataError, match=r"hair/1\.png"):
        SpritesLPC()
    hair.unlink()
    with pytest.raises(DataError, match=r"hair/1\.png.*YingzhenLi"):
        SpritesLPC()


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
