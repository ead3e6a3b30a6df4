"""Latent traversals, code frequencies, and a choice of latents over layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from disentwine.core.capabilities import Decodes
from disentwine.core.types import UInt8Array
from disentwine.errors import UsageError
from disentwine.nn.images import to_uint8


def traverse(model: Any, z: NDArray[np.floating], values: Mapping[int, ArrayLike]) -> UInt8Array:
    """Latent traversal: images of one vector of latents with a single latent changed at a time.

    Arguments:
        model: one that decodes.
        z: (d,) the latents of an image, as `model.represent(image)` returns them.
        values: for each latent to change, the values it takes; as many for each.

    Returns:
        (latents, values, height, width, channels).

    >>> from disentwine import VAE
    >>> model = VAE(image_shape=(16, 16, 1), latent=3)
    >>> traverse(model, np.zeros(3), {0: [-2, 0, 2], 2: [-1, 0, 1]}).shape
    (2, 3, 16, 16, 1)
    """
    if not isinstance(model, Decodes):
        raise UsageError(
            f"{type(model).__name__} has no decoder, so its latents cannot be traversed"
        )
    rows = [np.asarray(row, dtype=float) for row in values.values()]
    if not rows or rows[0].ndim != 1 or len({row.shape for row in rows}) > 1:
        raise UsageError("values: give each latent one row of numbers, as many for each")
    if z.ndim != 1 or not all(0 <= latent < len(z) for latent in values):
        raise UsageError(
            f"latents {', '.join(map(str, values))} of shape {z.shape}: give the latents of one "
            "image, and numbers of latents that it has; the first is 0"
        )
    moved = np.tile(z, (len(rows), len(rows[0]), 1))
    for row, latent in enumerate(values):
        moved[row, :, latent] = rows[row]
    weight: Any = next(model.parameters())  # type: ignore[attr-defined]
    with torch.no_grad():
        decoded = to_uint8(model.decode(torch.from_numpy(moved).flatten(0, 1).to(weight)))
    images: UInt8Array = decoded.cpu().numpy()
    return images.reshape(*moved.shape[:2], *images.shape[1:])


def code_frequencies(
    column: NDArray[np.floating],
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """The codes that occur in a quantized latent, and the share of images of each, most frequent first.

    Ties are resolved by the order in which codes occur, not by their numbers.

    Arguments:
        column: (n,) the code of each image.

    >>> code_frequencies(np.array([5.0, 3.0, 3.0, 1.0]))
    (array([3., 5., 1.]), array([0.5 , 0.25, 0.25]))
    """
    codes, first, counts = np.unique(column, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return codes[order], counts[order] / len(column)


def round_robin_by_layer(latents: Sequence[int], layers: Sequence[int], *, most: int) -> list[int]:
    """Some latents of a hierarchy, from the top layer down; layers take turns in giving their next.

    Arguments:
        latents: to choose from, the most informative first.
        layers: the layer of each latent, 1 next to the image.
        most: how many to take.

    >>> round_robin_by_layer([0, 1, 2, 3], [1, 1, 1, 2], most=3)
    [3, 0, 1]
    """
    turn = {z: sum(layers[v] == layers[z] for v in latents[:i]) for i, z in enumerate(latents)}
    taken = sorted(latents, key=lambda z: (turn[z], -layers[z]))[:most]
    return sorted(taken, key=lambda z: (-layers[z], turn[z]))
