"""The loader of the LPC sprites, on random characters."""

import numpy as np
import pytest
from PIL import Image

from disentwine.core.dataset import Simulates
from disentwine.data import SpritesLPC
from disentwine.data.published import sprites_lpc
from disentwine.errors import DataError, UsageError


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
    with pytest.raises(UsageError, match=r"'body' is one of 0, 1, 2, .*got 3"):
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
    hair.write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"hair/1\.png"):
        SpritesLPC()
    hair.unlink()
    with pytest.raises(DataError, match=r"hair/1\.png.*YingzhenLi"):
        SpritesLPC()
