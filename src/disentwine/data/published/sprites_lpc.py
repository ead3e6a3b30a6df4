"""LPC sprites: characters of the Liberated Pixel Cup, composited from layers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, Factor, Simulation, tenths
from disentwine.core.types import Count, Do, FloatArray, IndexArray, UInt8Array
from disentwine.data.files import find_file, refusing_damage
from disentwine.data.images import decode
from disentwine.data.lazy_images import LazyImages, every_combination
from disentwine.data.simulation import counterfactual, no_edges
from disentwine.data.synthetic.canvas import factor_table
from disentwine.errors import UsageError

SOURCE = "https://github.com/YingzhenLi/Sprites (its folders body, bottomwear, ...)"
LICENCE = "CC BY-SA 3.0 or GPL 3.0, the artists of the Liberated Pixel Cup"
TILE, SHEET = 64, (1344, 832, 4)
SHEETS = {"bottomwear": 7, "topwear": 7, "hair": 10, "eyes": 5, "shoes": 3, "body": 7}
BOTTOM_TO_TOP = ("body", "shoes", "bottomwear", "topwear", "eyes", "hair")
ACTIONS = ("spellcast", "thrust", "walk", "slash", "shoot")
ROTATIONS = {"left": 1, "front": 2, "right": 3}
"""Rows of a sheet by rotation; views from behind are left out, as they hide faces and some clothes."""

FRAMES = 6
"""Number of frames that all actions have."""

OPAQUE = 128
"""Alpha above which a layer covers those below."""


class SpritesLPC(Dataset):
    """Characters with nine factors, composited layer by layer on access.

    With all variants of every layer these are the 4,630,500 images of CT-VAE. By default every layer
    has at most four variants: 276,480 images. 10 % are test images, and 10 % but at most 10,000 are
    validation images.

    Reference: Disentangled Sequential Autoencoder, Y. Li and S. Mandt, 2018, for the layers;
    Disentanglement of Latent Representations via Causal Interventions, G. Gendron, M. Witbrock and
    G. Dobbie, 2023, for the nine factors.

    Arguments:
        variants: largest number of variants of each layer; 10 takes all.
        seed: of the split.
    """

    about: ClassVar[str] = (
        "LPC characters: clothes, hair, eyes, body, action, rotation, frame (layers)"
    )

    def __init__(self, *, variants: Count = 4, seed: int = 0) -> None:
        self.variants, self.seed = variants, seed
        counts = {layer: min(variants, count) for layer, count in SHEETS.items()}
        self.spec = (
            *(
                Factor(layer, "categorical", values=tuple(str(i) for i in range(count)))
                for layer, count in counts.items()
            ),
            Factor("action", "categorical", values=ACTIONS),
            Factor("rotation", "categorical", values=tuple(ROTATIONS)),
            Factor("frame", "ordinal", values=tuple(range(FRAMES))),
        )
        self.tiles = {layer: read_layer(layer, count) for layer, count in counts.items()}
        self.factors = every_combination(*(range(len(factor.values)) for factor in self.spec))
        self.graph = no_edges(self.names)
        n = len(self.factors)
        self.images = LazyImages((n, TILE, TILE, 3), self._render)
        self.split = tenths(n, seed=seed)

    def _render(self, indices: IndexArray) -> UInt8Array:
        return composite(self.tiles, self.factors[indices].astype(np.intp))

    def simulate(
        self, factors: FloatArray, do: Do | None = None, *, noise: FloatArray | None = None
    ) -> Simulation:
        """Render any combination of the factors; the factors are independent.

        Arguments:
            factors: (n, 9) index of the value of each factor.
            do: the intervention.
            noise: unused; the factors determine the image.
        """
        table = factor_table(factors, self.names)
        after = counterfactual(table, self.spec, self.graph, {}, do)
        for factor, column in zip(self.spec, after.T, strict=True):
            wrong = ~np.isin(column, range(len(factor.values)))
            if wrong.any():
                raise UsageError(
                    f"there is no {factor.name} {column[wrong][0]:g}: "
                    f"choose 0 to {len(factor.values) - 1} ({', '.join(map(str, factor.values))})"
                )
        return Simulation(composite(self.tiles, after.astype(np.intp)), after)


def read_layer(layer: str, count: int) -> UInt8Array:
    """The tiles of the first sheets of a layer, (count, action, rotation, frame, 64, 64, 4)."""
    tiles = np.empty((count, len(ACTIONS), len(ROTATIONS), FRAMES, TILE, TILE, 4), np.uint8)
    for i in range(count):
        name = f"{layer}/{i}.png"
        path = find_file(
            [f"sprites_lpc/layers/{name}", f"sprites_lpc/{name}", name],
            dataset="sprites-lpc",
            source=SOURCE,
            licence=LICENCE,
        )
        with refusing_damage(path):
            with path.open("rb") as file, decode(file, str(path)) as image:
                sheet = np.asarray(image.convert("RGBA"))
            if sheet.shape != SHEET:
                raise ValueError(f"it is {sheet.shape[1]}x{sheet.shape[0]}, not 832x1344 pixels")
        rows = sheet.reshape(-1, TILE, SHEET[1] // TILE, TILE, 4).swapaxes(1, 2)
        views = rows[: 4 * len(ACTIONS)].reshape(len(ACTIONS), 4, *rows.shape[1:])
        tiles[i] = views[:, list(ROTATIONS.values()), :FRAMES]
    return tiles


def composite(tiles: dict[str, UInt8Array], rows: NDArray[np.intp]) -> UInt8Array:
    """The layers of each row of factor indices, composited on black, (n, 64, 64, 3)."""
    # Copying the four bytes of a pixel as one integer is several times as fast.
    canvas = np.zeros((len(rows), TILE, TILE), np.uint32)
    action, rotation, frame = rows[:, len(SHEETS) :].T
    for layer in BOTTOM_TO_TOP:
        variant = rows[:, list(SHEETS).index(layer)]
        tile = tiles[layer][variant, action, rotation, frame]
        np.copyto(canvas, tile.view(np.uint32)[..., 0], where=tile[..., 3] > OPAQUE)
    return canvas.view(np.uint8).reshape(-1, TILE, TILE, 4)[..., :3].copy()
