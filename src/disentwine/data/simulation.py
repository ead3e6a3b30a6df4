"""Counterfactual factors and images of simulators; data sets rendered on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np

from disentwine.core.dataset import Dataset, Factor, Images, Simulates, Simulation
from disentwine.core.interventions import Intervention
from disentwine.core.types import Do, FloatArray, IndexArray
from disentwine.errors import UsageError

Mechanism = Callable[[Mapping[str, FloatArray]], FloatArray]
"""A factor's value as a function of its causes, without its own noise."""


def counterfactual(
    factors: FloatArray,
    spec: Sequence[Factor],
    graph: nx.DiGraph,
    mechanisms: Mapping[str, Mechanism],
    do: Do | None,
) -> FloatArray:
    r"""Counterfactual factors by abduction, action and prediction in an additive-noise model.

    Abduction: $n_i = x_i - f_i(x_{pa(i)})$. Prediction: $x_i' = f_i(x_{pa(i)}') + n_i$.
    Non-descendants of the intervention are unchanged, bit for bit.

    Reference: Causality, J. Pearl, 2009, section 7.1.

    Arguments:
        factors: (n, k) the observed factors.
        spec: the factor of each column.
        graph: causes point to effects.
        mechanisms: $f_i$ of each factor with causes.
        do: the intervention.

    >>> graph = nx.DiGraph([("cause", "effect")])
    >>> mechanisms = {"effect": lambda x: 2 * x["cause"]}
    >>> spec = Factor("cause"), Factor("effect")
    >>> counterfactual(np.array([[1.0, 2.5]]), spec, graph, mechanisms, {"cause": 3.0})
    array([[3. , 6.5]])
    """
    names = [factor.name for factor in spec]
    before = {name: factors[:, i] for i, name in enumerate(names)}
    intervention = Intervention.parse(do or {}, spec, kind="factor")
    numbers = intervention.resolve(len(factors), lambda: factors)
    after = before | {names[i]: values for i, values in numbers.items()}
    for name in nx.topological_sort(graph):
        if name in intervention.names or all(
            after[cause] is before[cause] for cause in graph.predecessors(name)
        ):
            continue
        f = mechanisms[name]
        after[name] = f(after) + (before[name] - f(before))
    return np.stack([after[name] for name in names], axis=1) if names else factors.copy()


def rerender(dataset: Dataset, indices: IndexArray, do: Do | None = None) -> Simulation:
    """Render images of a data set under an intervention, each with its observed noise.

    Arguments:
        dataset: a simulator.
        indices: (n,) of the images; may repeat.
        do: the intervention.

    >>> from disentwine.data import Flow
    >>> cups = Flow(size=32)
    >>> bool((rerender(cups, np.array([7, 7])).images == cups.images[7]).all())
    True
    """
    if not isinstance(dataset, Simulates):
        raise UsageError(
            f"{type(dataset).__name__} is not a simulator, so its images cannot be rendered again"
        )
    noise: FloatArray | None = getattr(dataset, "noise", None)
    noise = None if noise is None else noise[indices]
    return dataset.simulate(dataset.factors[indices], do, noise=noise)


def no_edges(names: Iterable[str]) -> nx.DiGraph:
    """A causal graph without edges, for independent factors.

    >>> print(no_edges(["scale", "x"]))
    DiGraph with 2 nodes and 0 edges
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    return graph


@dataclass(frozen=True)
class Rendering:
    """Deferred rendering: images are rendered on first use.

    Arguments:
        shape: (n, height, width, channels).
        render: renders all images.
    """

    shape: tuple[int, int, int, int]
    render: Callable[[], Images]

    @cached_property
    def images(self) -> Images:
        """All images, rendered once."""
        return self.render()


class RenderedDataset(Dataset):
    """A data set whose images are rendered on first use, once for all its copies.

    Attributes:
        rendering: the deferred rendering, shared by all copies.
    """

    rendering: Rendering

    @cached_property
    def images(self) -> Images:  # type: ignore[override]
        """(n, height, width, channels), rendered on first use."""
        return self.rendering.images

    def __len__(self) -> int:
        return self.rendering.shape[0]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        return self.rendering.shape[1:]
