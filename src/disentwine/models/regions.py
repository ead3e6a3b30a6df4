"""Where each group of concepts is painted, as training images tell."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from disentwine.causal.graph import Graph
from disentwine.causal.grouping import FAINT, Grouping, group_concepts, varied_rows
from disentwine.contracts.dataset import Dataset, FloatArray, UInt8Array
from disentwine.errors import warn
from disentwine.models.labels import enough_labels
from disentwine.nn.painters import Box

GROUPS_FROM = 2000
HIDDEN = 0.05
"""Of a channel's variance: where the mean of all channels has less, it hides what changes."""

REACH = 32
"""A painter may paint this share of the image's height beyond the pixels that are its own."""


def learn_regions(dataset: Dataset, graph: Graph) -> tuple[tuple[tuple[int, ...], ...], Tensor]:
    """The concepts of each group, and (groups, height, width) 1 on the pixels of each and a little
    around them.

    Warns of every concept that neither a pixel nor an effect with pixels shows.

    Arguments:
        dataset: its training images with all labels count.
        graph: of the concepts.
    """
    labels = enough_labels(dataset, to_learn="which pixels show which concept")
    train = dataset.split["train"]
    labelled = train[np.isfinite(dataset.factors[train]).all(axis=1)]
    some = labelled[varied_rows(labels, GROUPS_FROM)]
    shown = brightness(dataset.images[some]).reshape(len(some), -1) / 255
    grouping = group_concepts(dataset.factors[some], shown, graph)
    for name in _unseen(grouping, graph):
        warn(
            f"do({name}=...) will change nothing: no pixel was found that follows '{name}', or an effect "
            f"of it. What it changes may be too faint (below {FAINT:.1%} of the variance of the liveliest "
            f"pixel), too rare, or told as well by other labels; show it more strongly or in more "
            f"images, or leave it out"
        )
    height, width, _ = dataset.image_shape
    owner = torch.from_numpy(grouping.owner).view(height, width)
    owned = torch.stack([owner == g for g in range(len(grouping.groups))]).float()
    reach = max(1, height // REACH)
    return grouping.groups, F.max_pool2d(owned, 2 * reach + 1, 1, reach)


def box_around(region: Tensor) -> Box:
    """The smallest box around a region; the whole image where it is empty.

    >>> region = torch.zeros(8, 8)
    >>> region[2:4, 5] = 1
    >>> box_around(region)
    (2, 5, 4, 6)
    """
    rows, columns = (torch.nonzero(region.any(dim))[:, 0].tolist() for dim in (1, 0))
    if not rows:
        return 0, 0, region.shape[0], region.shape[1]
    return rows[0], columns[0], rows[-1] + 1, columns[-1] + 1


def _unseen(grouping: Grouping, graph: Graph) -> list[str]:
    """The concepts that no pixel shows, be it through their effects."""
    visible = {
        graph.names[i]
        for group, seen in zip(grouping.groups, grouping.seen, strict=True)
        for i in group
        if seen
    }
    return [name for name in graph.names if not visible & {name, *graph.descendants(name)}]


def brightness(images: UInt8Array) -> FloatArray:
    """(n, height, width, channels) to (n, height, width): the mean of the channels or, where it hides a
    change of hue, the channel that changes most.

    >>> red_to_green = np.array([[200, 0, 0], [100, 100, 0], [0, 200, 0]], np.uint8)
    >>> brightness(red_to_green.reshape(3, 1, 1, 3))[:, 0, 0]
    array([200., 100.,   0.])
    """
    grey, variances = images.mean(axis=-1), images.var(axis=0)
    liveliest = variances.argmax(axis=-1)[None, ..., None]
    hidden = grey.var(axis=0) < HIDDEN * variances.max(axis=-1)
    hue = np.take_along_axis(images, liveliest, axis=-1)[..., 0]
    return np.asarray(np.where(hidden, hue, grey))
