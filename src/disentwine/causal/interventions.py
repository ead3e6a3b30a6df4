"""The one parser and validator of do-values; ranges; words for categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from disentwine.core.capabilities import Intervenes
from disentwine.core.dataset import Dataset, column_index
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError, warn

LabelValues = tuple[tuple[float | str, ...], ...]
"""For each concept the names of its categories, or its least and greatest label."""

RANGE_MARGIN = 0.1
"""How far beyond those of training other images' labels may well lie, as a share of their range."""


def label_values(dataset: Dataset) -> LabelValues:
    """For each factor the names of its categories, or the least and greatest of its training labels.

    >>> from disentwine.data import Pendulum
    >>> [round(end) for end in label_values(Pendulum(size=32))[1]]
    [54, 132]
    """
    train = dataset.factors[dataset.split["train"]]
    return tuple(
        category_names(factor.values) or (float(np.nanmin(column)), float(np.nanmax(column)))
        for factor, column in zip(dataset.spec, train.T, strict=True)
    )


def category_names(values: Sequence[float | str]) -> tuple[str, ...]:
    """The names among values; none where they are numbers.

    >>> category_names(("red", "blue")), category_names((0.5, 1.0))
    (('red', 'blue'), ())
    """
    return tuple(value for value in values if isinstance(value, str))


class Intervention:
    """The value of each concept that is set, in each of some images.

    Arguments:
        do: for each concept a value, a value an image, or a function of the old values, which is called
            once, with those of all images.
        n: how many images.
        names: of all concepts.
        seen: what training saw of each; nothing is known where it is empty.
        read: tells the old values (n, k), where they are needed.

    Attributes:
        numbers: by the place of each concept that is set, (n,) in its label's own unit.

    >>> colours = {"names": ("colour",), "seen": (("red", "blue"),)}
    >>> Intervention({"colour": "blue"}, 2, **colours, read=lambda: [[0.2], [0.9]]).numbers
    {0: array([1., 1.])}
    """

    def __init__(
        self,
        do: Mapping[str, Any],
        n: int,
        *,
        names: tuple[str, ...],
        seen: LabelValues,
        read: Callable[[], Any],
    ) -> None:
        self.names, self.seen = names, seen or ((),) * len(names)
        self._n, self._read = n, read
        self.numbers: dict[int, FloatArray] = {}
        for name, value in do.items():
            i = column_index(names, name, kind="concept")
            given = value(self._old[:, i].copy()) if callable(value) else value
            self.numbers[i] = np.array(np.broadcast_to(self._checked(i, given), n))

    @cached_property
    def _old(self) -> FloatArray:
        """(n, k); reading it costs as much as painting."""
        return np.asarray(torch.as_tensor(self._read()).cpu().double()).reshape(self._n, -1)

    def _checked(self, i: int, value: Any) -> FloatArray:
        """One number, or one an image."""
        name, categories = self.names[i], category_names(self.seen[i])
        array = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
        if array.shape not in ((), (self._n,)):
            raise UsageError(f"do: '{name}' needs one value, or one an image")
        if categories and array.dtype.kind == "U":
            for word in array.flat:
                if word not in categories:
                    raise self._no_category(i, repr(str(word)))
            array = np.vectorize(categories.index, otypes=[float])(array)
        if not np.can_cast(array.dtype, np.float64):
            raise UsageError(f"do: '{name}' needs a number, got {value!r}")
        if not np.isfinite(array).all():
            raise UsageError(f"do: '{name}' must be a finite number, got {value}")
        return array.astype(np.float64)

    def check_range(self) -> None:
        """Refuse numbers that are no category, but for one that an image has already, and warn where
        training saw nothing near."""
        guesses = []
        for i, new in self.numbers.items():
            if categories := category_names(self.seen[i]):
                odd = ~np.isin(new, np.arange(len(categories)))
                if odd.any() and (odd := odd & (new != self._old[:, i])).any():
                    raise self._no_category(i, f"{new[odd][0]:g}")
            elif self.seen[i]:
                low, high = (float(end) for end in self.seen[i])
                far = np.maximum(low - new, new - high)
                if far.max(initial=-np.inf) > RANGE_MARGIN * (high - low):
                    guesses.append(
                        f"{self.names[i]}={new[far.argmax()]:g} ({low:.4g} to {high:.4g})"
                    )
        if guesses:
            warn(f"{', '.join(guesses)}: outside of what training saw, so the picture is a guess")

    def _no_category(self, i: int, got: str) -> UsageError:
        categories = category_names(self.seen[i])
        return UsageError(
            f"do: '{self.names[i]}' is one of {', '.join(categories)}, "
            f"or its number from 0 to {len(categories) - 1}; got {got}"
        )


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
