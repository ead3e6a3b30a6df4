"""Drawing samples that share a factor's value, from codes that were computed once.

On a full grid, two samples drawn from the same value of one factor differ independently in all
others, as the protocols of Higgins et al. and Kim and Mnih ask. On other data they differ as the
data do: what the factors share in distribution, they share here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from disentwine.contracts.dataset import FloatArray, IndexArray
from disentwine.metrics.inputs import BINS, class_table


class ValueIndex:
    """For each factor, which samples have which value.

    Arguments:
        factors: (n, k).
        bins: a continuous factor is cut into so many bins, and values count as shared within one.
    """

    def __init__(self, factors: FloatArray, *, bins: int = BINS) -> None:
        self.n, self.k = factors.shape
        self.classes = class_table(factors, bins=bins)
        self.order = [np.argsort(classes, kind="stable") for classes in self.classes.T]
        self.counts = [np.bincount(classes) for classes in self.classes.T]
        self.starts = [np.concatenate([[0], np.cumsum(count)[:-1]]) for count in self.counts]

    def like(self, samples: IndexArray, factor: int, rng: np.random.Generator) -> IndexArray:
        """For each sample, one drawn from those with the same value of the factor."""
        value = self.classes[samples, factor]
        within = (rng.random(samples.shape) * self.counts[factor][value]).astype(np.int64)
        drawn: NDArray[np.int64] = self.order[factor][self.starts[factor][value] + within]
        return drawn
