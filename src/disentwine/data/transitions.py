"""Test images identical to a training image (leakage); pairs one factor step apart."""

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
    r"""All pairs $(x, y, a)$ in which y is x after one step of one factor, the others held.

    Every factor has the actions "+name" and "-name": one step up or down its grid, the sorted values
    that occur in the data. A step beyond the grid's end makes no pair, unless the factor goes round
    (`Factor.cyclic`) over more than two values: then it leads to the other end. For yes-or-no
    attributes a step is a flip. Where several images have exactly the factors that y must have
    (faces, say), one of them is drawn.

    Pairs are made within each part of the data set's split; those across parts are left out, so test
    images are unseen in training, though images of other factors may look the same
    (`data.seen.seen_in_training`). They are shuffled: any first n are a random sample.

    Reference: Disentanglement of Latent Representations via Causal Interventions, G. Gendron,
    M. Witbrock and G. Dobbie, 2023, section 4.

    Arguments:
        dataset: one whose factors are not continuous; images without labels are left out.
        seed: of the order, and of the choice between images with the same factors.
        factors: those that act, and are held while another acts; when omitted those that the data
            set says (`Dataset.with_transitions`, in a recipe `data.transitions`), which may be all.
        cyclic: False ends every grid, as the paper's own pairs do, also of factors that go round; as
            the data set says when omitted.
        held: factors that do not act, and are held too; of any kind. Those that neither act nor are held
            may differ between the images of a pair, as faces do. As the data set says when omitted.
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
            before = steps.level[images, i]
            for action, direction in ((2 * i, 1), (2 * i + 1, -1)):
                after = steps.after(before, i, direction)
                inside = np.flatnonzero(after >= 0)
                wanted = keys[inside] + (after - before)[inside] * stride
                tables.append(_found(images, keys, inside, wanted, action, rng))
        table = np.concatenate(tables)
        pairs[part] = table[rng.permutation(len(table))[:limit]]
    if not len(pairs["train"]):
        raise DataError(
            f"{dataset!r}: no two training images differ by one step of one factor of "
            f"{', '.join(dataset.names[i] for i in steps.columns)}; choose fewer `factors`, or hold fewer"
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
    wanted: IndexArray,
    action: int,
    rng: np.random.Generator,
) -> IndexArray:
    """Rows (x, y, action) for each candidate whose wanted key occurs among `keys`, which are sorted."""
    first = np.searchsorted(keys, wanted, "left")
    count = np.searchsorted(keys, wanted, "right") - first
    found = count > 0
    rows = np.empty((int(found.sum()), 3), np.int64)
    rows[:, 0] = images[candidates[found]]
    rows[:, 1] = images[first[found] + rng.integers(count[found])]
    rows[:, 2] = action
    return rows


AT_ONCE = 4096


def seen_in_training(dataset: Dataset, images: IndexArray) -> NDArray[np.bool_]:
    """Whether a training image has the same pixels, (n,).

    Images of different factors may look alike: a square that is turned by 90 degrees, a figure whose
    weapon is not in its hand yet. All training images are looked through, which takes seconds.

    Arguments:
        dataset: whose "train" split is learnt from.
        images: (n,) which to ask about.

    >>> from disentwine.data import Arrays
    >>> pictures = np.zeros((20, 8, 8, 1), np.uint8)
    >>> pictures[7] = 255
    >>> dataset = Arrays(images=pictures)
    >>> dataset.split = {**dataset.split, "train": np.arange(7)}
    >>> seen_in_training(dataset, np.array([7, 8]))
    array([False,  True])
    """
    train = np.sort(np.asarray(dataset.split["train"]))
    learnt = {look for part in _parts(train) for look in _looks(dataset, part)}
    asked = [look in learnt for part in _parts(images) for look in _looks(dataset, part)]
    return np.array(asked, dtype=bool)


def _parts(images: IndexArray) -> list[IndexArray]:
    return [images[first : first + AT_ONCE] for first in range(0, len(images), AT_ONCE)]


def _looks(dataset: Dataset, images: IndexArray) -> list[int]:
    """A number for what each image looks like."""
    return [hash(picture.tobytes()) for picture in dataset.images[images]]
