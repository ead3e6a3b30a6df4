"""Transitions: pairs of images that differ by one step of one factor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from disentwine.contracts.dataset import Dataset, IndexArray, column_index
from disentwine.contracts.transitions import Transitions
from disentwine.errors import DataError, UsageError

MOST_COMBINATIONS = 2**62


def transitions(
    dataset: Dataset,
    *,
    seed: int = 0,
    factors: Sequence[str] | None = None,
    limit: int | None = None,
) -> Transitions:
    r"""All pairs $(x, y, a)$ in which y is x after one step of one factor, the others held.

    Every factor has the actions "+name" and "-name": one step up or down its grid, the sorted values
    that occur in the data. A step beyond the grid's end makes no pair, unless the factor goes round
    (`Factor.cyclic`): then it leads to the other end. For yes-or-no attributes a step is a flip.
    Where several images have exactly the factors that y must have (faces, say), one is drawn.

    Pairs are made within each part of the data set's split; those across parts are left out, so test
    images are unseen in training. They are shuffled: any first n are a random sample.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 4.

    Arguments:
        dataset: one whose factors are not continuous; images without labels are left out.
        seed: of the order, and of the choice between images with the same factors.
        factors: those that act, and are held while another acts; all when omitted.
        limit: the most pairs to keep of each part.

    >>> from disentwine.data import Arrays
    >>> grid = np.stack([axis.ravel() for axis in np.mgrid[:5, :4]], axis=1)
    >>> images = np.zeros((20, 8, 8, 1), np.uint8)
    >>> kinds = {"size": "ordinal", "colour": "ordinal"}
    >>> steps = transitions(Arrays(images=images, factors=grid, names=[*kinds], kinds=kinds))
    >>> steps.actions
    ('+size', '-size', '+colour', '-colour')
    >>> x, y, action = steps.pairs["train"][0]
    >>> changed = steps.dataset.factors[y] - steps.dataset.factors[x]
    >>> bool(changed[steps.factor_of_action[action]] == steps.direction_of_action[action])
    True
    """
    chosen = _acting(dataset, factors)
    key, level, sizes, strides = _keys(dataset, chosen)
    rng = np.random.default_rng(seed)
    pairs = {}
    for part in ("train", "validation", "test"):
        images = dataset.split[part]
        images = rng.permutation(images[key[images] >= 0])
        images = images[np.argsort(key[images], kind="stable")]
        tables = []
        for i, factor in enumerate(chosen):
            cyclic = dataset.spec[factor].cyclic and sizes[i] > 2
            for action, direction in ((2 * i, 1), (2 * i + 1, -1)):
                before = level[images, i]
                after = before + direction
                if cyclic:
                    after %= sizes[i]
                inside = (after >= 0) & (after < sizes[i])
                target = key[images] + (after - before) * strides[i]
                tables.append(_matches(images, key[images], target, inside, action, rng))
        table = np.concatenate(tables)
        pairs[part] = table[rng.permutation(len(table))[:limit]]
    if not len(pairs["train"]):
        raise DataError(
            f"{dataset!r}: no two training images differ by one step of one factor of "
            f"{', '.join(dataset.names[i] for i in chosen)}; choose fewer `factors`"
        )
    return Transitions(
        dataset=dataset,
        actions=tuple(f"{sign}{dataset.names[i]}" for i in chosen for sign in "+-"),
        pairs=pairs,
        factor_of_action=np.repeat(np.array(chosen, np.int64), 2),
        direction_of_action=np.tile(np.array([1, -1], np.int64), len(chosen)),
    )


def _acting(dataset: Dataset, factors: Sequence[str] | None) -> list[int]:
    """Columns of the factors that act: those named, or all that have two values or more."""
    named = dataset.names if factors is None else factors
    columns = [column_index(dataset.names, name) for name in named]
    varied = [i for i in columns if len(np.unique(_known(dataset, i))) > 1]
    continuous = [dataset.names[i] for i in varied if dataset.spec[i].kind == "continuous"]
    if continuous or not varied:
        has = f"'{continuous[0]}' is continuous" if continuous else "no factor varies"
        raise UsageError(
            f"transitions are steps on a grid, but in {dataset!r} {has}; "
            "name factors with steps in `factors`"
        )
    return varied


def _known(dataset: Dataset, column: int) -> np.ndarray:
    values = dataset.factors[:, column]
    return values[~np.isnan(values)]


def _keys(
    dataset: Dataset, chosen: list[int]
) -> tuple[IndexArray, IndexArray, list[int], list[int]]:
    """A number for each combination of levels (-1 without labels), the levels, sizes and strides."""
    grids = [np.unique(_known(dataset, i)) for i in chosen]
    level = np.stack(
        [np.searchsorted(g, dataset.factors[:, i]) for g, i in zip(grids, chosen, strict=True)],
        axis=1,
    )
    sizes = [len(grid) for grid in grids]
    strides = [1]
    for size in sizes:
        strides.append(strides[-1] * size)
    if strides[-1] > MOST_COMBINATIONS:
        raise UsageError(
            f"{len(chosen)} factors have {strides[-1]:.1e} combinations; choose fewer `factors`"
        )
    key = level @ np.array(strides[:-1], np.int64)
    key[np.isnan(dataset.factors[:, chosen]).any(axis=1)] = -1
    return key, level, sizes, strides[:-1]


def _matches(
    images: IndexArray,
    keys: IndexArray,
    target: IndexArray,
    inside: np.ndarray,
    action: int,
    rng: np.random.Generator,
) -> IndexArray:
    """Rows (x, y, action) for each image whose target key occurs among `keys`, which are sorted."""
    first = np.searchsorted(keys, target, "left")
    count = np.searchsorted(keys, target, "right") - first
    found = inside & (count > 0)
    y = first[found] + rng.integers(count[found])
    x = images[found]
    return np.stack([x, images[y], np.full(len(x), action, np.int64)], axis=1)
