"""NOTEARS: a linear graph by least squares under a smooth acyclicity constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from disentwine.causal.concepts import checked_labels
from disentwine.causal.graph import Graph, find_cycle
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError

TOLERANCE = 1e-8
MAX_PENALTY = 1e16


def discover_notears(
    labels: ArrayLike,
    names: Sequence[str],
    *,
    sparsity: float = 0.1,
    threshold: float = 0.3,
    standardise: bool = True,
    on_step: Callable[[FloatArray], None] | None = None,
) -> Graph:
    r"""Learn A by the augmented Lagrangian of $\min_A \tfrac{1}{2n} \|X - XA\|^2 + \lambda_1 \|A\|_1$
    subject to H(A) = 0, starting from A = 0.

    CausalVAE pre-trains A in this way. For nonlinear effects, and for effects that their causes
    determine, `discover` is more accurate.

    Reference: DAGs with NO TEARS, X. Zheng et al., 2018, with H(A) of DAG-GNN, Y. Yu et al., 2019.

    Arguments:
        labels: (n, k), one column per name; rows with NaN are left out.
        names: of the columns.
        sparsity: $\lambda_1$.
        threshold: edges of smaller absolute weight are removed.
        standardise: scale all labels to unit variance. Otherwise directions depend on the units of the
            labels, which is correct only if all noise variances are equal, as the method assumes.
        on_step: callback with A, at the start and after every step of the optimiser.

    >>> rng = np.random.default_rng(0)
    >>> a, b, noise = rng.normal(size=(3, 500))
    >>> x = np.stack([a, b, a + b + noise], axis=1)
    >>> discover_notears(x, ("a", "b", "c"), standardise=False)
    Graph(a -> c, b -> c)
    """
    if sparsity < 0 or threshold < 0:
        raise UsageError("sparsity and threshold must not be negative")
    x = checked_labels(labels, names)
    x = x - x.mean(axis=0)
    with threadpool_limits(limits=1):
        scaled = x / x.std(axis=0) if standardise else x
        weights = _augmented_lagrangian(scaled, sparsity, on_step or (lambda A: None))
    weights[np.abs(weights) < threshold] = 0
    while cycle := find_cycle(weights != 0):  # that remain within the tolerance
        weakest = min(pairwise(cycle), key=lambda edge: abs(weights[edge]))
        weights[weakest] = 0
    return Graph(names, weights)


def _augmented_lagrangian(
    x: FloatArray, sparsity: float, on_step: Callable[[FloatArray], None]
) -> FloatArray:
    from scipy.optimize import minimize

    n, k = x.shape
    covariance = x.T @ x / n
    alpha, rho, violation = 0.0, 1.0, np.inf
    # A = positive - negative part, which makes the 1-norm linear and keeps L-BFGS applicable.
    parts = np.zeros(2 * k * k)
    free = ~np.tile(np.eye(k, dtype=bool).ravel(), 2)
    bounds = [(0, None) if is_free else (0, 0) for is_free in free]

    def adjacency(parts: FloatArray) -> FloatArray:
        return np.asarray((parts[: k * k] - parts[k * k :]).reshape(k, k))

    def report_step(parts: FloatArray) -> None:
        on_step(adjacency(parts))

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        A = adjacency(parts)
        residual_map = np.eye(k) - A
        h, h_gradient = _acyclicity(A)
        loss = (
            0.5 * np.trace(residual_map.T @ covariance @ residual_map)
            + alpha * h
            + 0.5 * rho * h * h
        )
        gradient = (-covariance @ residual_map + (alpha + rho * h) * h_gradient).ravel()
        parts_gradient = np.concatenate([gradient, -gradient]) + sparsity
        return float(loss + sparsity * parts.sum()), parts_gradient

    report_step(parts)
    while violation > TOLERANCE and rho < MAX_PENALTY:
        while rho < MAX_PENALTY:
            found = minimize(
                objective, parts, jac=True, method="L-BFGS-B", bounds=bounds, callback=report_step
            ).x
            new_violation = _acyclicity(adjacency(found))[0]
            if new_violation <= 0.25 * violation:
                break
            rho *= 10
        parts, violation = found, new_violation
        alpha += rho * new_violation
    return adjacency(parts)


def _acyclicity(A: FloatArray) -> tuple[float, FloatArray]:
    r"""H(A) of `nn.concept_layers.acyclicity` and its gradient, $2 c A \circ (W^{m-1})^T$ with
    $W = I + \tfrac{c}{m} A \circ A$, with c = 1 and without torch."""
    m = len(A)
    W = np.eye(m) + A * A / m
    power = np.linalg.matrix_power(W, m - 1)
    return float((power.T * W).sum() - m), 2 * A * power.T
