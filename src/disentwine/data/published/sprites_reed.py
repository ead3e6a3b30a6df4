"""Sprites of Reed et al.: animated characters with seven attributes, from the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.data.files import existing_files, find_file, load_mat, load_npz, refusing_damage
from disentwine.data.lazy_images import LazyImages
from disentwine.errors import DataError

SOURCE = "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz (its folder data/sprites)"
LICENCE = "none is stated; cite S. Reed et al., Deep Visual Analogy-Making, 2015"
PACKED = ["sprites_reed/sprites_60x60_indexed.npz", "sprites_60x60_indexed.npz"]
FOLDERS = ("sprites_reed", "data/sprites", "sprites")
CHARACTERS, SIDE = 672, 60
# The files have no attribute names; these are the paper's, assigned by inspection of the images.
ATTRIBUTES = {"gender": 2, "body": 4, "armor": 3, "hair": 6, "arm": 2, "greaves": 2, "weapon": 2}
ACTIONS = {"spellcast": 7, "thrust": 8, "walk": 9, "slash": 6, "shoot": 13, "hurt": 6}
ROTATIONS = ("back", "left", "front", "right")
ANIMATIONS = [(a, r) for a in range(5) for r in range(4)] + [(5, 2)]
"""(action, rotation) of the 21 animations; "hurt" exists from the front only."""


class SpriteFrames(NamedTuple):
    """All frames as indices (n, 60, 60) into a palette (colours, 3), and their factors."""

    pixels: NDArray[np.uint16]
    palette: UInt8Array
    attributes: NDArray[np.int64]
    character: IndexArray
    animation: IndexArray
    frame: IndexArray
    parts: dict[str, IndexArray]


class SpritesReed(Dataset):
    """119,616 frames of 672 characters, 60x60, in the published split by characters.

    Read from one packed file of all frames if it exists, else from the 672 published MATLAB files,
    which requires h5py. The frames are stored as palette indices, in 860 MB.

    Reference: Deep Visual Analogy-Making, S. Reed, Y. Zhang, Y. Zhang and H. Lee, 2015.
    """

    about: ClassVar[str] = "672 animated characters with 7 attributes, 60x60; the published files"
    spec = (
        *(
            Factor(name, "categorical", values=tuple(str(i) for i in range(count)))
            for name, count in ATTRIBUTES.items()
        ),
        Factor("action", "categorical", values=tuple(ACTIONS)),
        Factor("rotation", "categorical", values=ROTATIONS, cyclic=True),
        Factor("frame", "ordinal", values=tuple(range(max(ACTIONS.values())))),
    )

    def __init__(self) -> None:
        packed = existing_files(PACKED)
        sprites = read_packed(packed[0]) if packed else read_published()
        self.factors = factor_table(sprites)
        self.split = {
            part: np.flatnonzero(np.isin(sprites.character, characters)).astype(np.int64)
            for part, characters in sprites.parts.items()
        }
        pixels, palette = sprites.pixels, sprites.palette
        self.images = LazyImages((len(pixels), SIDE, SIDE, 3), lambda rows: palette[pixels[rows]])


def factor_table(sprites: SpriteFrames) -> FloatArray:
    """Attributes, action, rotation and frame, (n, 10)."""
    action, rotation = np.array(ANIMATIONS)[sprites.animation].T
    columns = [*sprites.attributes.T, action, rotation, sprites.frame]
    return np.stack(columns, axis=1).astype(np.float64)


def read_packed(path: Path) -> SpriteFrames:
    """All frames from one file."""
    parts = {"train": "train", "validation": "valid", "test": "test"}
    keys = ["index", "palette", "attributes", "character", "animation", "frame"]
    names = [f"{part}_characters_1based" for part in parts.values()]
    arrays = load_npz(path, [*keys, *names])
    with refusing_damage(path):
        n = len(arrays["index"])
        if arrays["index"].shape != (n, SIDE, SIDE) or any(len(arrays[k]) != n for k in keys[2:]):
            raise ValueError("its arrays have different numbers of frames")
        if arrays["index"].max() >= len(arrays["palette"]):
            raise ValueError("its indices exceed the palette")
    attributes, character, animation, frame = (arrays[k].astype(np.int64) for k in keys[2:])
    return SpriteFrames(
        arrays["index"],
        arrays["palette"],
        attributes,
        character,
        animation,
        frame,
        {part: arrays[name].astype(np.int64) - 1 for part, name in zip(parts, names, strict=True)},
    )


def read_published() -> SpriteFrames:
    """All frames from the 672 MATLAB files, and the split from sprites_splits.mat."""
    first, splits = _find("sprites_0.mat"), _find("sprites_splits.mat")
    keys = {"train": "trainidx", "validation": "validx", "test": "testidx"}
    table = load_mat(splits, list(keys.values()))
    parts = {part: table[key].astype(np.int64).ravel() - 1 for part, key in keys.items()}
    colours: dict[int, int] = {}
    frames, attributes, counts = [], [], []
    for i in range(CHARACTERS):
        path = first.with_name(f"sprites_{i}.mat")
        if not path.is_file():
            raise DataError(f"sprites-reed: {path} is missing; its owners publish it at {SOURCE}")
        animations, labels = read_character(path)
        for images in animations:
            packed = images.astype(np.int64) @ (65536, 256, 1)
            for colour in np.unique(packed):
                colours.setdefault(int(colour), len(colours))
            order = np.array(list(colours))
            sorter = np.argsort(order)
            found = sorter[np.searchsorted(order, packed, sorter=sorter)]
            frames.append(found.astype(np.uint16))
        attributes.append(labels)
        counts.append([len(images) for images in animations])
    lengths = np.array(counts)
    rgb = np.array(list(colours))
    return SpriteFrames(
        np.concatenate(frames),
        np.stack([rgb >> 16, rgb >> 8 & 255, rgb & 255], axis=1).astype(np.uint8),
        np.repeat(np.array(attributes), lengths.sum(1), axis=0),
        np.repeat(np.arange(CHARACTERS), lengths.sum(1)),
        np.repeat(np.tile(np.arange(len(ANIMATIONS)), CHARACTERS), lengths.ravel()),
        np.concatenate([np.arange(count) for count in lengths.ravel()]),
        parts,
    )


def read_character(path: Path) -> tuple[list[UInt8Array], NDArray[np.int64]]:
    """The 21 animations (frames, 60, 60, 3) of one character, and its seven attributes."""
    try:
        import h5py
    except ImportError as error:
        raise DataError(f"{path} is HDF5: install h5py to read it, pip install h5py") from error
    with refusing_damage(path), h5py.File(path, "r") as file:
        if not {"labels", "sprites"} <= set(file):
            raise ValueError("it has no labels or sprites")
        labels: Any = np.asarray(file["labels"], np.int64).ravel()
        animations = [np.asarray(file[reference]) for reference in np.ravel(file["sprites"])]
        if len(animations) != len(ANIMATIONS) or len(labels) != len(ATTRIBUTES):
            raise ValueError(f"{len(animations)} animations and {len(labels)} labels")
        # MATLAB stores an image with the row index changing fastest, then column, then colour.
        return [
            np.rint(255 * images).astype(np.uint8).reshape(-1, 3, SIDE, SIDE).transpose(0, 3, 2, 1)
            for images in animations
        ], labels


def _find(name: str) -> Path:
    return find_file(
        [f"{folder}/{name}" for folder in FOLDERS],
        dataset="sprites-reed",
        source=SOURCE,
        licence=LICENCE,
    )
