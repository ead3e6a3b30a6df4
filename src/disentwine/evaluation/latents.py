"""Traverse(); KL per unit; fair choice over layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from disentwine.core.capabilities import Decodes
from disentwine.core.score import Score
from disentwine.core.types import UInt8Array
from disentwine.errors import UsageError
from disentwine.figures.hierarchy import ACTIVE
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.nn.distributions import DiagonalGaussian
from disentwine.nn.images import to_uint8


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


@runtime_checkable
class Infers(Protocol):
    """A distribution over codes can be inferred from images, not only their mean."""

    def posterior(self, x: Tensor) -> Any: ...


@runtime_checkable
class Diverges(Protocol):
    """The model tells the divergence of its units itself, since their priors depend on draws."""

    def kl_per_latent(self, x: Tensor) -> Tensor: ...


def unit_divergences(model: Any, x: Tensor) -> Tensor | None:
    """(n, d) nats by which each unit's posterior diverges from a standard normal; None where it is no
    Gaussian. Of a hierarchy it is from what the layer above expects, along draws as in the loss.

    Arguments:
        model: of any kind.
        x: (n, channels, height, width) in [0, 1].
    """
    if isinstance(model, Diverges):
        return model.kl_per_latent(x)
    q = model.posterior(x) if isinstance(model, Infers) else None
    if not isinstance(q, DiagonalGaussian):
        return None
    return kl_to_standard_normal(q.mean, q.log_variance)


def diverging_units(kl: NDArray[np.floating], *, n: int) -> Score:
    """The number of units that say more than the layer above, in place of `metrics.active_units`.

    Arguments:
        kl: (d,) mean divergence of each unit from its prior, in nats.
        n: images that it is the mean of.

    >>> diverging_units(np.array([0.5, 0.001]), n=100).details["alive"]
    [True, False]
    """
    alive = kl > ACTIVE
    about = f"of {len(kl)}: units that diverge from their prior by more than {ACTIVE} nats"
    return Score(
        "active-units",
        float(alive.sum()),
        n=n,
        details={"about": about, "alive": alive.tolist()},
    )


def code_frequencies(
    column: NDArray[np.floating],
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """The names that a unit has over images, and the share of images of each, the commonest first.

    Of names with the same share the one that is seen first comes first, whatever they are called.

    Arguments:
        column: (n,) the unit's name in each image.

    >>> code_frequencies(np.array([5.0, 3.0, 3.0, 1.0]))
    (array([3., 5., 1.]), array([0.5 , 0.25, 0.25]))
    """
    names, seen, counts = np.unique(column, return_index=True, return_counts=True)
    order = np.lexsort((seen, -counts))
    return names[order], counts[order] / len(column)


def round_robin_by_layer(units: Sequence[int], layers: Sequence[int], *, most: int) -> list[int]:
    """Some units of a hierarchy, from the top layer down; layers take turns in giving their next one.

    Arguments:
        units: to choose from, the busiest first.
        layers: the layer of each unit of the code, 1 next to the image.
        most: how many to take.

    >>> round_robin_by_layer([0, 1, 2, 3], [1, 1, 1, 2], most=3)
    [3, 0, 1]
    """
    turn = {u: sum(layers[v] == layers[u] for v in units[:i]) for i, u in enumerate(units)}
    taken = sorted(units, key=lambda unit: (turn[unit], -layers[unit]))[:most]
    return sorted(taken, key=lambda unit: (-layers[unit], turn[unit]))
