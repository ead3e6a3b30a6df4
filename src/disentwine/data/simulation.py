"""Counterfactuals: what every factor, and so every image, would have been under an intervention."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import networkx as nx
import numpy as np

from disentwine.core.dataset import Dataset, Simulates, Simulation, column_index
from disentwine.core.types import Do, FloatArray, IndexArray
from disentwine.errors import UsageError

Mechanism = Callable[[Mapping[str, FloatArray]], FloatArray]
"""A factor's value as a function of its causes, its own noise aside."""


def counterfactual(
    factors: FloatArray,
    names: tuple[str, ...],
    graph: nx.DiGraph,
    mechanisms: Mapping[str, Mechanism],
    do: Do | None,
) -> FloatArray:
    r"""Abduction, action and prediction in an additive-noise model.

    Each effect keeps the noise it had, $n_i = x_i - f_i(x_{pa(i)})$, while its causes change:
    $x_i' = f_i(x_{pa(i)}') + n_i$. Factors that are not downstream of an intervention are
    returned to the bit.

    Reference: Causality, J. Pearl, 2009, section 7.1.

    Arguments:
        factors: (n, k) the table as observed; it is not changed.
        names: the name of each column.
        graph: causes point to effects.
        mechanisms: $f_i$ for each factor that has causes.
        do: the intervention.

    >>> graph = nx.DiGraph([("cause", "effect")])
    >>> twice = {"effect": lambda x: 2 * x["cause"]}
    >>> counterfactual(np.array([[1.0, 2.5]]), ("cause", "effect"), graph, twice, {"cause": 3.0})
    array([[3. , 6.5]])
    """
    do = do or {}
    before = {name: factors[:, i] for i, name in enumerate(names)}
    after = dict(before)
    for name, value in do.items():
        column_index(names, name)
        asked = value(before[name]) if callable(value) else value
        try:
            new = np.asarray(asked, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"do: '{name}' needs a number, got {asked!r}") from None
        if new.ndim and new.shape != before[name].shape:
            raise UsageError(
                f"do: '{name}' has {new.shape} values for {len(factors)} images; give one or one each"
            )
        if not np.isfinite(new).all():
            raise UsageError(f"do: '{name}' must be a finite number, got {value}")
        after[name] = np.broadcast_to(new, before[name].shape)
    for name in nx.topological_sort(graph):
        if name in do or all(after[cause] is before[cause] for cause in graph.predecessors(name)):
            continue
        f = mechanisms[name]
        after[name] = f(after) + (before[name] - f(before))
    return np.stack([after[name] for name in names], axis=1) if names else factors.copy()


def redraw(dataset: Dataset, indices: IndexArray, do: Do | None = None) -> Simulation:
    """Images of a data set as they would have been, each with the noise of its own.

    Arguments:
        dataset: one that simulates.
        indices: (n,) which images; any may come several times.
        do: the intervention.

    >>> from disentwine.data import Flow
    >>> cups = Flow(size=32)
    >>> bool((redraw(cups, np.array([7, 7])).images == cups.images[7]).all())
    True
    """
    if not isinstance(dataset, Simulates):
        raise UsageError(
            f"{type(dataset).__name__} cannot redraw its images; take a data set that can simulate"
        )
    noise: FloatArray | None = getattr(dataset, "noise", None)
    own = None if noise is None else noise[indices]
    return dataset.simulate(dataset.factors[indices], do, noise=own)
