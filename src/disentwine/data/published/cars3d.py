"""Cars3D: 183 cars at 24 azimuths and 4 elevations, from the published files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from disentwine.core.dataset import Dataset, Factor, random_split
from disentwine.core.types import Count, UInt8Array
from disentwine.data.files import cache_path, find_file, load_cached, load_mat, refusing_damage
from disentwine.data.images import shrink
from disentwine.data.lazy_images import every_combination
from disentwine.errors import DataError
from disentwine.progress import ProgressBar

SOURCE = "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz (its folder data/cars)"
LICENCE = "none is stated; cite S. Reed et al., Deep Visual Analogy-Making, 2015"
CARS, SIDE = 183, 128
ELEVATIONS = (0, 6, 12, 18)
AZIMUTHS = tuple(range(0, 360, 15))


class Cars3D(Dataset):
    """17,568 images of cars, each at every azimuth and elevation, in the order of the published list.

    The images are decoded once and cached as one array in the user's cache (`XDG_CACHE_HOME`,
    216 MB). 15 % of the images are test images and 15 % validation images, as for CT-VAE.

    Reference: Deep Visual Analogy-Making, S. Reed, Y. Zhang, Y. Zhang and H. Lee, 2015.

    Arguments:
        size: height and width of the images; the published ones are 128x128.
        seed: of the split.
    """

    about: ClassVar[str] = "183 cars at 24 azimuths and 4 elevations, 64x64; the published files"
    spec = (
        Factor("car", "categorical", values=tuple(map(str, range(CARS)))),
        Factor("azimuth", "ordinal", "°", AZIMUTHS, cyclic=True),
        Factor("elevation", "ordinal", "°", ELEVATIONS),
    )

    def __init__(self, *, size: Count = 64, seed: int = 0) -> None:
        self.size, self.seed = size, seed
        listed = find_file(
            ["cars3d/cars/list.txt", "data/cars/list.txt", "cars/list.txt"],
            dataset="cars3d",
            source=SOURCE,
            licence=LICENCE,
        )
        self.factors = every_combination(range(CARS), AZIMUTHS, ELEVATIONS)
        n = len(self.factors)
        self.images = load_cached(
            cache_path(f"cars3d_{size}", list(listed.parent.glob("*_mesh.mat"))),
            shape=(n, size, size, 3),
            read=lambda: read_cars(listed, size=size),
        )
        self.split = random_split(n, test=n * 15 // 100, validation=n * 15 // 100, seed=seed)


def read_cars(listed: Path, *, size: int) -> UInt8Array:
    """All cars of the list, (17568, size, size, 3); the elevation changes fastest."""
    names = listed.read_text(encoding="utf-8").split()
    if len(names) != CARS or len(set(names)) != CARS:
        raise DataError(f"{listed} names {len(set(names))} cars instead of {CARS}; fetch it again")
    cars = np.empty((CARS, len(AZIMUTHS) * len(ELEVATIONS), size, size, 3), np.uint8)
    with ProgressBar("reading cars", total=CARS) as bar:
        for i, name in enumerate(names):
            cars[i] = read_car(listed.with_name(f"{Path(name).name}.mat"), size=size)
            bar.advance()
    return cars.reshape(-1, size, size, 3)


def read_car(path: Path, *, size: int) -> UInt8Array:
    """One car, (96, size, size, 3), from its array `im` (row, column, channel, azimuth, elevation)."""
    shape = (SIDE, SIDE, 3, len(AZIMUTHS), len(ELEVATIONS))
    im = load_mat(path, ["im"])["im"]
    with refusing_damage(path):
        if im.shape != shape or im.dtype != np.uint8:
            raise ValueError(f"its array im has shape {im.shape} instead of {shape}")
    # MATLAB stores arrays in column-major order: after transposing, the planes need no copy.
    planes = shrink(im.T.reshape(-1, SIDE, SIDE), size).reshape(*shape[:2:-1], 3, size, size)
    return planes.transpose(1, 0, 4, 3, 2).reshape(-1, size, size, 3)
