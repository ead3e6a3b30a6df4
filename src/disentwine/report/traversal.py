"""What single numbers of a code do to a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from disentwine.contracts.capabilities import Decodes
from disentwine.contracts.dataset import UInt8Array
from disentwine.errors import UsageError
from disentwine.nn.pictures import to_uint8


def traverse(model: Any, code: NDArray[np.floating], values: Mapping[int, ArrayLike]) -> UInt8Array:
    """The pictures of one code with a single unit moved at a time, the others as they were.

    Arguments:
        model: one that decodes.
        code: (d,) of a picture, as `model.represent(picture)` has it.
        values: for each unit that is moved, the values it takes; as many for each.

    Returns:
        (units, values, height, width, channels).

    >>> from disentwine import VAE
    >>> model = VAE(image_shape=(16, 16, 1), latent=3)
    >>> traverse(model, np.zeros(3), {0: [-2, 0, 2], 2: [-1, 0, 1]}).shape
    (2, 3, 16, 16, 1)
    """
    if not isinstance(model, Decodes):
        raise UsageError(f"{type(model).__name__} has no decoder of codes, so they cannot be moved")
    rows = [np.asarray(row, dtype=float) for row in values.values()]
    if not rows or rows[0].ndim != 1 or len({row.shape for row in rows}) > 1:
        raise UsageError("values: give each unit one row of numbers, as many for each unit")
    if code.ndim != 1 or not all(0 <= unit < len(code) for unit in values):
        raise UsageError(
            f"units {', '.join(map(str, values))} of a code of shape {code.shape}: give the code of "
            "one picture, and units that it has; the first is 0"
        )
    moved = np.tile(code, (len(rows), len(rows[0]), 1))
    for row, unit in enumerate(values):
        moved[row, :, unit] = rows[row]
    weight: Any = next(model.parameters())  # type: ignore[attr-defined]
    with torch.no_grad():
        decoded = to_uint8(model.decode(torch.from_numpy(moved).flatten(0, 1).to(weight)))
    pictures: UInt8Array = decoded.cpu().numpy()
    return pictures.reshape(*moved.shape[:2], *pictures.shape[1:])
