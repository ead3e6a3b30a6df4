"""Pairs of images one factor step apart; test images that duplicate training images."""

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
    in the data. A step beyond the end makes no pair, unless the factor is cyclic (`Factor.cyclic`)
    with more than two values: then it leads to the other end. A step of a binary attribute is a flip.
    If several images have the factors of y, one is sampled.

    Pairs lie within one part of the split, so test images are not in the training set, though images
    with other factors may have the same pixels (`seen_in_training`). Pairs are shuffled: the first n
    are a random sample.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 4.

    Arguments:
        dataset: one whose factors are not continuous; images without labels are left out.
        seed: of the order, and of the choice between images with the same factors.
        factors: the factors that actions change, one at a time; those of the data set when omitted
            (`Dataset.with_transitions`, in a recipe `data.transitions`; all by default).
        cyclic: False ends every grid, also of cyclic factors, as in the paper; as in the data set when
            omitted.
        fixed: factors of any kind that are equal in both images of a pair and that no action changes;
            all others may differ. As in the data set when omitted.
        limit: largest number of pairs in each part.

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
    action_spec = ActionSpec(
        dataset.action_spec.factors if factors is None else tuple(factors),
        dataset.action_spec.cyclic if cyclic is None else cyclic,
        dataset.action_spec.fixed if fixed is None else tuple(fixed),
    )
    if action_spec != dataset.action_spec:
        dataset = dataset.with_transitions(**vars(action_spec))
    steps = FactorGrid(dataset)
    rng = np.random.default_rng(seed)
    pairs = {}
    for part in ("train", "validation", "test"):
        images = dataset.split[part]
        images = rng.permutation(images[steps.key[images] >= 0])
        images = images[np.argsort(steps.key[images], kind="stable")]
        keys = steps.key[images]
        tables = []
        for i, stride in enumerate(steps.strides):
            before = steps.index[images, i]
            for action, direction in ((2 * i, 1), (2 * i + 1, -1)):
                after = steps.after(before, i, direction)
                inside = np.flatnonzero(after >= 0)
                targets = keys[inside] + (after - before)[inside] * stride
                tables.append(_found(images, keys, inside, targets, action, rng))
        table = np.concatenate(tables)
        pairs[part] = table[rng.permutation(len(table))[:limit]]
    if not len(pairs["train"]):
        raise DataError(
            f"{dataset!r}: no two training images differ by one step of one factor of "
            f"{', '.join(dataset.names[i] for i in steps.columns)}; choose fewer `factors`, or fix fewer"
        )
    return Transitions(
        dataset=dataset,
        actions=tuple(f"{sign}{dataset.names[i]}" for i in steps.columns for sign in "+-"),
        pairs=pairs,
        factor_of_action=np.repeat(np.array(steps.columns, np.int64), 2),
        direction_of_action=np.tile(np.array([1, -1], np.int64), len(steps.columns)),
    )


def _found(
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


AT_ONCE = 4096


def seen_in_training(dataset: Dataset, images: IndexArray) -> NDArray[np.bool_]:
    """Whether a training image has the same pixels, (n,).

    Images of different factors may be identical: a square rotated by 90 degrees, a character whose
    weapon is not in its hand yet. All training images are compared, which takes seconds.

    Arguments:
        dataset: whose "train" split is searched.
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
    known = {digest for part in _parts(train) for digest in _digests(dataset, part)}
    found = [digest in known for part in _parts(images) for digest in _digests(dataset, part)]
    return np.array(found, dtype=bool)


def _parts(images: IndexArray) -> list[IndexArray]:
    return [images[first : first + AT_ONCE] for first in range(0, len(images), AT_ONCE)]


def _digests(dataset: Dataset, images: IndexArray) -> list[int]:
    """A hash of each image's pixels."""
    return [hash(image.tobytes()) for image in dataset.images[images]]
