"""Between which values training saw a concept."""

from __future__ import annotations

import numpy as np

from disentwine.contracts.capabilities import Intervenes
from disentwine.contracts.dataset import Dataset
from disentwine.models.wanted import category_names


def training_range(model: Intervenes, dataset: Dataset | None, name: str) -> tuple[float, float]:
    """Least and greatest value of a concept in the training labels, or what the model keeps of them.

    Arguments:
        model: has the concept.
        dataset: what it was trained on, where that is at hand.
        name: the concept's.

    >>> from disentwine import data
    >>> from disentwine.models import CausalVAE
    >>> pendulum = data.Pendulum(size=32)
    >>> model = CausalVAE.for_data(pendulum, edges=tuple(pendulum.graph.edges))
    >>> low, high = training_range(model, pendulum, "light_angle")
    >>> round(low), round(high)
    (54, 132)
    """
    if dataset is not None and name in dataset.names:
        column = dataset.column(name)[dataset.split["train"]]
        if np.isfinite(column).any():
            return float(np.nanmin(column)), float(np.nanmax(column))
    kept = kept_labels(model, name)
    if categories := category_names(kept):
        return 0.0, len(categories) - 1.0
    if kept:
        return float(kept[0]), float(kept[1])
    means, scales = getattr(model, "label_mean", None), getattr(model, "label_scale", None)
    if means is None or scales is None:
        return -3.0, 3.0
    i = model.concept_names.index(name)
    return means[i] - 2 * scales[i], means[i] + 2 * scales[i]


def kept_labels(model: Intervenes, name: str) -> tuple[float | str, ...]:
    """The names of a concept's categories, or its least and greatest training label, as the model keeps
    them; nothing where it keeps none.

    >>> from disentwine import data
    >>> from disentwine.models import CausalVAE
    >>> pendulum = data.Pendulum(size=32)
    >>> model = CausalVAE.for_data(pendulum, edges=tuple(pendulum.graph.edges))
    >>> [round(end) for end in kept_labels(model, "light_angle")]
    [54, 132]
    """
    kept = dict(zip(model.concept_names, getattr(model, "label_values", ()), strict=False))
    return tuple(kept.get(name, ()))
