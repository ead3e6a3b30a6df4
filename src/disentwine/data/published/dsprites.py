"""dSprites: the published file and smaller files made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, tenths
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.files import existing_files, find_file, load_npz, refusing_damage, stream_npz
from disentwine.data.lazy_images import PackedImages
from disentwine.data.synthetic.shapes2d import GRID, SIZES, SPEC, independent_factors
from disentwine.errors import DataError, UsageError, did_you_mean

Variant = Literal["full", "grid", "random", "rerender"]

FILES: dict[str, str] = {
    "full": "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "grid": "dsprites_downsampled.npz",
    "random": "dsprites_subset.npz",
    "rerender": "dsprites_rerender_packed.npz",
}
GRID_STEPS = (1, 1, 4, 2, 2)
"""Subsampling of shape, scale, orientation, x and y in "grid"."""

PUBLISHED = "https://github.com/google-deepmind/dsprites-dataset"
SOURCES = {
    "full": PUBLISHED,
    "grid": f"{PUBLISHED} as {FILES['full']}, which also has these images",
}
UNPUBLISHED = "nowhere: this file was made for tests; 'variant=full' is the published file"


class DSprites(Dataset):
    """Three binary shapes under scale, orientation and position, read from a file.

    The images are stored as bits: all 737,280 in 378 MB. 10 % are test images, and 10 % but at most
    10,000 are validation images, so "full" has the same split as `Shapes2D` with the same seed.

    Reference: dSprites: Disentanglement testing Sprites dataset, L. Matthey, I. Higgins,
    D. Hassabis and A. Lerchner, 2017.

    Arguments:
        variant: "full" is the published file; "grid" has every fourth orientation and every second
            position of it, 46,080 images, from that file or a smaller one; "random" has 20,000 of its
            images; "rerender" is another rendering of all 737,280.
        seed: of the split.

    >>> DSprites(variant="grids")
    Traceback (most recent call last):
    ...
    disentwine.errors.UsageError: there is no dSprites variant 'grids'. Did you mean 'grid'?
    """

    about = "dSprites: three shapes, scale, orientation, x, y (read from the published file)"
    spec = SPEC

    def __init__(self, *, variant: Variant = "full", seed: int = 0) -> None:
        if variant not in FILES:
            raise UsageError(
                f"there is no dSprites variant '{variant}'. {did_you_mean(variant, FILES)}"
            )
        self.variant = variant
        self.seed = seed
        self.graph = independent_factors()
        source = source_of(variant)
        path = find_variant(source)
        self.factors = read_factors(path, source)
        self.images = read_images(path, source, n=len(self.factors))
        if source != variant:
            rows = grid_rows()
            self.factors = self.factors[rows]
            self.images = PackedImages(self.images.bits[rows])
        n = len(self.factors)
        self.split = tenths(n, seed=seed)


def candidates(variant: str) -> list[str]:
    """Possible paths of the file of a variant, relative to the data folder."""
    return [f"dsprites/{FILES[variant]}", FILES[variant]]


def source_of(variant: Variant) -> Variant:
    """The variant whose file to read: "grid" is also part of the published file."""
    from_full = variant == "grid" and not existing_files(candidates("grid"))
    return "full" if from_full and existing_files(candidates("full")) else variant


def grid_rows() -> IndexArray:
    """The rows of the published file in "grid".

    >>> len(grid_rows()), grid_rows()[:3]
    (46080, array([0, 2, 4]))
    """
    rows = np.arange(np.prod(SIZES)).reshape(SIZES)
    return rows[tuple(slice(None, None, step) for step in GRID_STEPS)].ravel()


def find_variant(variant: Variant) -> Path:
    """The file of a variant; a missing file raises an error that names the available variants."""
    try:
        return find_file(
            candidates(variant),
            dataset="dSprites",
            source=SOURCES.get(variant, UNPUBLISHED),
            licence="Apache 2.0; its authors ask to be cited (Matthey et al., 2017)",
        )
    except DataError as missing:
        present = [other for other in get_args(Variant) if existing_files(candidates(other))]
        others = ", ".join(f"variant={name}" for name in present)
        instead = f"Available: {others}; or" if others else "Instead,"
        raise DataError(f"{missing}. {instead} 'shapes2d' is rendered and needs no file") from None


def read_factors(path: Path, variant: Variant) -> FloatArray:
    """(n, 5) shape index, scale, orientation, x, y."""
    if variant == "rerender":
        classes = load_npz(path, ["latents_classes"])["latents_classes"]
        check_table(path, classes.ndim == 2 and classes.shape[1] == 5, "latents_classes", classes)
        check_table(path, bool((classes < SIZES).all()), "latents_classes", classes)
        return np.stack([values[classes[:, i]] for i, values in enumerate(GRID)], axis=1)
    latents = load_npz(path, ["latents_values"])["latents_values"]
    # The first published factor is the colour, which is always white.
    check_table(path, latents.ndim == 2 and latents.shape[1] in (5, 6), "latents_values", latents)
    factors = latents[:, -5:].astype(np.float64)
    factors[:, 0] -= 1
    check_table(path, bool(np.isin(factors[:, 0], GRID[0]).all()), "latents_values", latents)
    return factors


def read_images(path: Path, variant: Variant, *, n: int) -> PackedImages:
    """The n images; those of the published file are bit-packed while reading."""
    with refusing_damage(path):
        if variant != "rerender":
            return PackedImages.pack(stream_npz(path, "imgs"), n=n)
        images = PackedImages(load_npz(path, ["imgs_packed"])["imgs_packed"])
        if len(images) != n:
            raise ValueError(f"there are {len(images)} images, but {n} rows of factors")
        return images


def check_table(path: Path, valid: bool, key: str, array: NDArray[Any]) -> None:
    """Refuse a table that is not from dSprites."""
    if not valid:
        raise DataError(
            f"{path}: '{key}' {array.shape} is not the table of dSprites (shape, scale, "
            f"orientation, x, y); it is not the published file: fetch it again"
        )
