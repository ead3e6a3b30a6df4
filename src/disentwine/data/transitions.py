"""Pairs of images one factor step apart; duplicates of training images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import ActionSpec, Dataset, Transitions
from disentwine.core.types import IndexArray
from disentwine.data.factor_grid import FactorGrid
from disentwine.errors import DataError


def transitions(
    dataset: Dataset,
    *,
    seed: int = 0,
    factors: Sequence[str] | None = None,
    cyclic: bool | None = None,
    fixed: Sequence[str] | None = None,
    limit: int | None = None,
) -> Transitions:
    r"""All pairs $(x, y, a)$ in which y differs from x by one step of one factor.

    Every factor has the actions "+name" and "-name": one step up or down its grid, the sorted values
    in the data. The ends of the grid have no further step, unless the factor is cyclic
    (`Factor.cyclic`) and has more than two values. A step of a binary attribute is a flip. If several
    images have the factors of y, one is sampled.

    Pairs lie within one part of the split, so test images are not in the training set, though images
    with other factors may have the same pixels (`seen_in_training`). Pairs are shuffled: the first n
    are a random sample.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 4.

    Arguments:
        dataset: a data set without continuous factors; images without labels are left out.
        seed: of the order, and of the choice between images with the same factors.
        factors: the factors that actions change, one at a time; those of the data set when omitted
            (`Dataset.with_transitions`, in a recipe `data.transitions`; all by default).
        cyclic: False treats cyclic factors as not cyclic, as in the paper; as in the data set when
            omitted.
        fixed: factors of any kind that are equal in both images of a pair and that no action changes;
            all others may differ. As in the data set when omitted.
        limit: largest number of pairs in each part of the split.

    >>> from disentwine.data import Arrays
    >>> factors = np.stack([axis.ravel() for axis in np.mgrid[:5, :4]], axis=1)
    >>> images = np.zeros((20, 8, 8, 1), np.uint8)
    >>> kinds = {"size": "ordinal", "colour": "ordinal"}
    >>> table = transitions(Arrays(images=images, factors=factors, names=[*kinds], kinds=kinds))
    >>> table.actions
    ('+size', '-size', '+colour', '-colour')
    >>> x, y, action = table.pairs["train"][0]
    >>> change = table.dataset.factors[y] - table.dataset.factors[x]
    >>> bool(change[table.factor_of_action[action]] == table.direction_of_action[action])
    True
    """
    action_spec = ActionSpec(
        dataset.action_spec.factors if factors is None else tuple(factors),
        dataset.action_spec.cyclic if cyclic is None else cyclic,
        dataset.action_spec.fixed if fixed is None else tuple(fixed),
    )
    if action_spec != dataset.action_spec:
        dataset = dataset.with_transitions(**vars(action_spec))
    grid = FactorGrid(dataset)
    rng = np.random.default_rng(seed)
    pairs = {}
    for part in ("train", "validation", "test"):
        images = dataset.split[part]
        images = rng.permutation(images[grid.key[images] >= 0])
        images = images[np.argsort(grid.key[images], kind="stable")]
        keys = grid.key[images]
        tables = []
        for i, stride in enumerate(grid.strides):
            before = grid.index[images, i]
            for action, direction in ((2 * i, 1), (2 * i + 1, -1)):
                after = grid.after(before, i, direction)
                inside = np.flatnonzero(after >= 0)
                targets = keys[inside] + (after - before)[inside] * stride
                tables.append(_matching_pairs(images, keys, inside, targets, action, rng))
        table = np.concatenate(tables)
        pairs[part] = table[rng.permutation(len(table))[:limit]]
    if not len(pairs["train"]):
        raise DataError(
            f"{dataset!r}: no two training images differ by one step of one factor of "
            f"{', '.join(dataset.names[i] for i in grid.columns)}; choose fewer `factors`, or fix fewer"
        )
    return Transitions(
        dataset=dataset,
        actions=tuple(f"{sign}{dataset.names[i]}" for i in grid.columns for sign in "+-"),
        pairs=pairs,
        factor_of_action=np.repeat(np.array(grid.columns, np.int64), 2),
        direction_of_action=np.tile(np.array([1, -1], np.int64), len(grid.columns)),
    )


def _matching_pairs(
    images: IndexArray,
    keys: IndexArray,
    candidates: IndexArray,
    targets: IndexArray,
    action: int,
    rng: np.random.Generator,
) -> IndexArray:
    """Rows (x, y, action) of the candidates whose target key occurs among the sorted `keys`."""
    first = np.searchsorted(keys, targets, "left")
    count = np.searchsorted(keys, targets, "right") - first
    found = count > 0
    rows = np.empty((int(found.sum()), 3), np.int64)
    rows[:, 0] = images[candidates[found]]
    rows[:, 1] = images[first[found] + rng.integers(count[found])]
    rows[:, 2] = action
    return rows


CHUNK = 4096


def seen_in_training(dataset: Dataset, images: IndexArray) -> NDArray[np.bool_]:
    """Whether a training image has the same pixels, (n,).

    Images of different factors can be identical, such as a square rotated by 90 degrees, or a character
    before its weapon appears. All training images are compared, which takes seconds.

    Arguments:
        dataset: its "train" split is searched.
        images: (n,) indices to look for.

    >>> from disentwine.data import Arrays
    >>> images = np.zeros((20, 8, 8, 1), np.uint8)
    >>> images[7] = 255
    >>> dataset = Arrays(images=images)
    >>> dataset.split = {**dataset.split, "train": np.arange(7)}
    >>> seen_in_training(dataset, np.array([7, 8]))
    array([False,  True])
    """
    train = np.sort(np.asarray(dataset.split["train"]))
    known = {digest for part in _chunks(train) for digest in _digests(dataset, part)}
    found = [digest in known for part in _chunks(images) for digest in _digests(dataset, part)]
    return np.array(found, dtype=bool)


def _chunks(images: IndexArray) -> list[IndexArray]:
    return [images[first : first + CHUNK] for first in range(0, len(images), CHUNK)]


def _digests(dataset: Dataset, images: IndexArray) -> list[int]:
    """A hash of each image's pixels."""
    return [hash(image.tobytes()) for image in dataset.images[images]]
