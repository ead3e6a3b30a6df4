"""Shared parts of metrics: checks, binning, mutual information, chance level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.types import FloatArray, IndexArray, Kind
from disentwine.errors import UsageError, did_you_mean


def entropy(classes: NDArray[np.int64]) -> float:
    r"""$H(v) = -\sum_a p(a) \log p(a)$ of one column of classes.

    >>> round(entropy(np.array([0, 0, 1, 1])), 4)
    0.6931
    """
    p = np.bincount(classes) / len(classes)
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def mutual_information(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    r"""$I(a; b) = \sum p(a, b) \log \frac{p(a, b)}{p(a) p(b)}$ of two columns of classes.

    >>> round(mutual_information(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])), 4)
    0.6931
    """
    width = int(b.max()) + 1
    joint = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    p = joint / len(a)
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    seen = p > 0
    return max(0.0, float((p[seen] * np.log(p[seen] / independent[seen])).sum()))


def information_matrix(latents: NDArray[np.int64], factors: NDArray[np.int64]) -> FloatArray:
    """Mutual information of each column of latents with each column of factors, (d, k)."""
    return np.array([[mutual_information(z, v) for v in factors.T] for z in latents.T])


def gap_of_best_two(matrix: FloatArray) -> FloatArray:
    """For each column, its largest entry less its second largest (which is 0 for a single row)."""
    ordered = np.sort(np.vstack([np.zeros(matrix.shape[1]), matrix]), axis=0)
    return np.asarray(ordered[-1] - ordered[-2])


Answer = TypeVar("Answer")

BINS = 20
"""Bins of equal width for latents and continuous factors."""

MOST_VALUES = 256
"""A factor with more distinct values than this counts as continuous."""

FEW_VALUES = 64
"""The same for factors that a classifier must learn, which needs samples of each value."""

DEAD = 1e-12
"""Square of a latent's range over that of its largest value up to which it counts as constant:
rounding to 32 bits is a little less."""


def checked(latents: ArrayLike, factors: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Latents (n, d) and factors (n, k) as tables of finite numbers, in a canonical order.

    The order of rows depends on their content alone, so no metric depends on the order in which
    samples are given, not even one that samples at random.
    """
    z, v = as_table(latents, "latents"), as_table(factors, "factors")
    if len(z) != len(v):
        raise UsageError(f"latents has {len(z)} rows and factors has {len(v)}; give a row an image")
    if len(z) < 2:
        raise UsageError(f"latents has {len(z)} rows; a score needs at least two samples")
    constant = np.flatnonzero(np.ptp(v, axis=0) == 0)
    if len(constant):
        raise UsageError(
            f"factors: column {constant[0]} has one value only; leave it out: it has no information"
        )
    order = canonical_order(np.hstack([z, v]))
    return z[order], v[order]


def check_counts(**counts: int) -> None:
    """Refuse options of a metric that are no whole number, or less than 1."""
    for name, value in counts.items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise UsageError(f"{name}: give 1 or more, got {value!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a word that is none of those that an option of a metric takes."""
    if value not in choices:
        raise UsageError(f"{name}: there is no {value!r}. {did_you_mean(str(value), choices)}")


def as_table(values: ArrayLike, name: str) -> FloatArray:
    """A table (n, columns) of finite numbers; a vector becomes one column."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be a table of numbers: {error}") from error
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise UsageError(f"{name} must be a table (n, columns) with columns; got {table.shape}")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise UsageError(f"{name} holds NaN or infinity, first in row {row}, column {column}")
    return table


def canonical_order(table: FloatArray) -> IndexArray:
    """An order of the rows that does not depend on the order in which they are given."""
    words = np.ascontiguousarray(table + 0.0).view(np.uint64)  # + 0.0 makes -0 and 0 the same word
    multipliers = (
        np.random.default_rng(0).integers(0, 2**63, words.shape[1], dtype=np.uint64) * 2 + 1
    )
    mixed = (words ^ (words >> np.uint64(29))) * multipliers
    return np.argsort((mixed ^ (mixed >> np.uint64(32))).sum(axis=1), kind="stable")


def classes_of(
    column: FloatArray, *, bins: int = BINS, most_values: int = MOST_VALUES
) -> NDArray[np.int64]:
    """The class of each value: its rank among the distinct ones, or its bin when they are too many.

    Too many are also those of which most occur once, as all do when a quantity is measured of few samples.

    >>> classes_of(np.array([0.5, 2.0, 0.5]))
    array([0, 1, 0])
    """
    distinct, classes = np.unique(column, return_inverse=True)
    alone = len(distinct) > bins and 2 * len(distinct) > len(column)
    if alone or len(distinct) > most_values:
        return equal_width_bins(column, bins=bins)
    return classes


def equal_width_bins(column: FloatArray, *, bins: int = BINS) -> NDArray[np.int64]:
    """Bins of equal width between the least and the largest value."""
    edges = np.linspace(column.min(), column.max(), bins + 1)[1:-1]
    return np.digitize(column, edges).astype(np.int64)


def code_classes(latents: FloatArray, *, bins: int, discrete_codes: bool) -> NDArray[np.int64]:
    """The class of each latent: its bin, or the code of a quantizer."""
    columns = [
        np.unique(c, return_inverse=True)[1] if discrete_codes else equal_width_bins(c, bins=bins)
        for c in latents.T
    ]
    return np.stack(columns, axis=1)


def varying(latents: FloatArray) -> NDArray[np.bool_]:
    r"""(d,) which latents are not constant up to rounding: $\max z - \min z > 10^{-6} \max |z|$.

    >>> varying(np.array([[1e-9, 5.0, 0.0], [2e-9, 5.0 + 1e-9, 0.0]]))
    array([ True, False, False])
    """
    return np.asarray(np.ptp(latents, axis=0) > np.sqrt(DEAD) * np.abs(latents).max(axis=0))


def features_of(latents: FloatArray, fitted: IndexArray, *, discrete_codes: bool) -> Any:
    """Features of a linear model of latents (n, d): standardised by the rows that it is fitted to, 0
    where these are constant, or one-hot codes of a quantizer."""
    from sklearn.preprocessing import OneHotEncoder

    if discrete_codes:
        return (
            OneHotEncoder(handle_unknown="ignore").fit(latents[fitted]).transform(latents).tocsr()
        )
    known = latents[fitted]
    return (latents - known.mean(axis=0)) / np.where(varying(known), known.std(axis=0), np.inf)


def class_table(table: FloatArray, *, bins: int = BINS) -> NDArray[np.int64]:
    """`classes_of` every column."""
    return np.stack([classes_of(column, bins=bins) for column in table.T], axis=1)


def classes_to_predict(factors: FloatArray, kinds: Sequence[Kind] | None) -> NDArray[np.int64]:
    """Classes for a classifier: few enough that each has samples, unless they are categories."""
    columns = zip(factors.T, kinds_of(factors, kinds), strict=True)
    return np.stack(
        [
            np.unique(column, return_inverse=True)[1]
            if kind == "categorical"
            else classes_of(column, most_values=FEW_VALUES)
            for column, kind in columns
        ],
        axis=1,
    )


def kinds_of(factors: FloatArray, kinds: Sequence[Kind] | None) -> list[Kind]:
    """The kind of each factor; those of two values are binary, others continuous, unless given."""
    if kinds is None:
        return ["binary" if len(np.unique(v)) == 2 else "continuous" for v in factors.T]
    if len(kinds) != factors.shape[1]:
        raise UsageError(f"kinds has {len(kinds)} entries for {factors.shape[1]} factors")
    for kind in kinds:
        check_choice("kinds", kind, get_args(Kind))
    return list(kinds)


def noise_floor(
    estimate: Callable[[FloatArray, FloatArray], Answer],
    latents: FloatArray,
    factors: FloatArray,
    *,
    seed: int,
) -> Answer:
    """The chance level: the same estimate with shuffled latents (permutation baseline)."""
    shuffled = np.random.default_rng([seed, 1]).permutation(len(latents))
    return estimate(latents[shuffled], factors)


class ValueIndex:
    """For each factor, the samples that have each value.

    Arguments:
        factors: (n, k).
        bins: of a continuous factor; values in one bin count as equal.
    """

    def __init__(self, factors: FloatArray, *, bins: int = BINS) -> None:
        self.n, self.k = factors.shape
        self.classes = class_table(factors, bins=bins)
        self.order = [np.argsort(classes, kind="stable") for classes in self.classes.T]
        self.counts = [np.bincount(classes) for classes in self.classes.T]
        self.starts = [np.concatenate([[0], np.cumsum(count)[:-1]]) for count in self.counts]

    def like(self, samples: IndexArray, factor: int, rng: np.random.Generator) -> IndexArray:
        """For each sample, a random one with the same value of the factor."""
        value = self.classes[samples, factor]
        within = (rng.random(samples.shape) * self.counts[factor][value]).astype(np.int64)
        drawn: NDArray[np.int64] = self.order[factor][self.starts[factor][value] + within]
        return drawn
