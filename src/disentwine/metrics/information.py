"""Entropy and mutual information of discrete columns, in nats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.dataset import FloatArray


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


def information_matrix(codes: NDArray[np.int64], factors: NDArray[np.int64]) -> FloatArray:
    """Mutual information of each column of codes with each column of factors, (d, k)."""
    return np.array([[mutual_information(z, v) for v in factors.T] for z in codes.T])


def gap_of_best_two(matrix: FloatArray) -> FloatArray:
    """For each column, its largest entry less its second largest (which is 0 for a single row)."""
    ordered = np.sort(np.vstack([np.zeros(matrix.shape[1]), matrix]), axis=0)
    return np.asarray(ordered[-1] - ordered[-2])
