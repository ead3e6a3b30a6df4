"""Maximal and total information coefficients: dependence of any shape, on a scale from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.errors import UsageError, did_you_mean
from disentwine.metrics._inputs import as_table, canonical_order
from disentwine.progress import ProgressBar

Estimator = Literal["approx", "e"]

FEWEST = 4
"""Samples: one for each cell of the smallest grid."""

LONG = 1_000_000
"""Pairs times samples from which on the work takes many seconds."""

MOST_CELLS = 2**16 - 1
"""Of a grid, since rows are numbered in 16 bits."""


class Axis(NamedTuple):
    """One variable, prepared once for all its partners: see `_mic_kernel.raise_cells`."""

    order: NDArray[np.int32]
    starts: NDArray[np.int32]
    row_of: NDArray[np.int16]


class Grids(NamedTuple):
    """Which grids are tried."""

    cells: int
    c: float
    estimator: Estimator


def mic(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alpha: float = 0.6,
    c: float = 15,
    estimator: Estimator = "approx",
) -> Score:
    r"""$\max_{kl \le B} M_{kl}$, with $M_{kl} = \max_G I(G) / \log \min(k, l)$ over k by l grids G.

    Grids have one axis equipartitioned and the other cut where information is largest. "approx"
    tries both axes for every k and l; "e" equipartitions the axis with more cells (x where k = l)
    and is consistent for the population's coefficient. "approx" is symmetric in x and y; "e" is but
    for its square grids.

    References: Detecting Novel Associations in Large Data Sets, D. Reshef et al., 2011 ("approx");
    Measuring Dependence Powerfully and Equitably, Y. Reshef et al., 2016 ("e").

    Arguments:
        x: (n,), at least 4 numbers.
        y: (n,).
        alpha: $B = \max(n^\alpha, 4)$ for alpha in (0, 1]; $B = \min(\alpha, n)$ for alpha from 4 on.
        c: how many times more places than columns there are for the borders of columns.
        estimator: "approx" or "e".

    >>> x = np.linspace(0, 1, 1000)
    >>> y = np.sin(10 * np.pi * x) + x
    >>> round(mic(x, y).value, 6), round(mic(x, y, estimator="e").value, 6)
    (1.0, 0.768927)
    """
    matrix, grids = _pair(x, y, alpha, c, estimator)
    return Score("mic", _mic(matrix), n=np.size(x), details=_details(grids))


def tic(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alpha: float = 0.6,
    c: float = 15,
    estimator: Estimator = "approx",
    normalised: bool = True,
) -> Score:
    r"""$\sum_{kl \le B} M_{kl}$ with M as in `mic`, a test of independence with more power.

    Arguments:
        x, y, alpha, c, estimator: as in `mic`.
        normalised: divide by the number of summands, so that 1 is the largest value.

    >>> x = np.linspace(0, 1, 1000)
    >>> y = np.sin(10 * np.pi * x) + x
    >>> round(tic(x, y).value, 6), round(tic(x, y, normalised=False).value, 5)
    (0.45717, 67.66123)
    """
    matrix, grids = _pair(x, y, alpha, c, estimator)
    value = _tic(matrix, grids) if normalised else float(matrix.sum())
    return Score("tic", value, n=np.size(x), details=_details(grids))


def mine(
    latents: ArrayLike,
    factors: ArrayLike,
    *,
    alpha: float = 0.6,
    c: float = 15,
    estimator: Estimator = "approx",
    seed: int = 0,
    floor_permutations: int = 3,
    progress: bool | None = None,
) -> tuple[Score, Score]:
    """MIC and normalised TIC of every latent with every factor; a factor counts by its best latent.

    The value is the mean over factors of the largest value over latents. Pairs run on as many threads
    as NUMBA_NUM_THREADS says (by default one a core).

    Arguments:
        latents: (n, d).
        factors: (n, k).
        alpha, c, estimator: as in `mic`.
        seed: of the permutation for the chance level.
        floor_permutations: permutations of the latents whose mean is the chance level; 0 for none.
        progress: show a bar; by default on a terminal, when the work is long.

    Details: the `matrix` (d, k) and the mean chance level of its entries, `matrix_noise_floor`; where
    d = k also its `diagonal`, for latents that should match the factors one by one, with its mean
    `matched` and its chance level `matched_noise_floor`.

    >>> v = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    >>> mic_score, tic_score = mine(v[:, ::-1], v)
    >>> mic_score.details["matrix"].round(6)
    array([[0., 1.],
           [1., 0.]])
    """
    z, v = as_table(latents, "latents"), as_table(factors, "factors")
    grids = _checked(z, v, ("latents", "factors"), alpha, c, estimator)
    if floor_permutations < 0:
        raise UsageError(f"floor_permutations must be 0 or more; got {floor_permutations}")
    own_order = canonical_order(np.hstack([z, v]))
    z, v = z[own_order], v[own_order]
    random = np.random.default_rng([seed, 1])
    orders = [np.arange(len(z)), *(random.permutation(len(z)) for _ in range(floor_permutations))]
    factor_axes = [_axis(column, grids) for column in v.T]
    both = np.empty((len(orders), z.shape[1], v.shape[1], 2))
    cells = product(range(len(orders)), range(z.shape[1]), range(v.shape[1]))
    found = (
        matrix
        for order in orders
        for matrix in _characteristic_matrices(
            [_axis(u, grids) for u in z[order].T], factor_axes, grids
        )
    )
    pairs = both.size // 2
    short = progress is None and pairs * len(z) < LONG
    shown: AbstractContextManager[ProgressBar | None] = (
        nullcontext() if short else ProgressBar("MIC and TIC", total=pairs, show=progress)
    )
    with shown as bar:
        for cell, matrix in zip(cells, found, strict=True):
            both[cell] = _mic(matrix), _tic(matrix, grids)
            if bar is not None:
                bar.advance()
    mic_values, tic_values = np.moveaxis(both, -1, 0)
    return _score("mic", mic_values, len(z), grids), _score("tic", tic_values, len(z), grids)


def _pair(
    x: ArrayLike, y: ArrayLike, alpha: float, c: float, estimator: Estimator
) -> tuple[FloatArray, Grids]:
    u, v = as_table(x, "x"), as_table(y, "y")
    for name, table in (("x", u), ("y", v)):
        if table.shape[1] != 1:
            raise UsageError(f"{name} must be one column of numbers; got {table.shape[1]} columns")
    grids = _checked(u, v, ("x", "y"), alpha, c, estimator)
    axes = [_axis(u[:, 0], grids)], [_axis(v[:, 0], grids)]
    return next(_characteristic_matrices(*axes, grids)), grids


def _checked(
    x: FloatArray,
    y: FloatArray,
    names: tuple[str, str],
    alpha: float,
    c: float,
    estimator: Estimator,
) -> Grids:
    n = len(x)
    if n != len(y):
        raise UsageError(f"{names[0]} has {n} samples and {names[1]} has {len(y)}; give as many")
    if n < FEWEST:
        raise UsageError(f"{names[0]} has {n} samples; a grid needs at least {FEWEST}")
    if not (0 < alpha <= 1 or 4 <= alpha < math.inf):
        raise UsageError(f"alpha must be in (0, 1], or a number of cells from 4 on; got {alpha}")
    if not 0 < c < math.inf:
        raise UsageError(f"c must be above 0 and finite; got {c}")
    if estimator not in get_args(Estimator):
        raise UsageError(
            f"estimator '{estimator}' is unknown. {did_you_mean(estimator, ['approx', 'e'])}"
        )
    cells = int(max(n**alpha, 4) if alpha <= 1 else min(alpha, n))
    if cells > MOST_CELLS:
        raise UsageError(
            f"alpha {alpha} allows grids of {cells} cells; lower it to {MOST_CELLS} or less"
        )
    return Grids(cells, float(c), estimator)


def _axis(values: FloatArray, grids: Grids) -> Axis:
    order = np.argsort(values, kind="stable").astype(np.int32)
    ranked = values[order]
    borders = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    starts = np.concatenate([[0], borders, [len(values)]]).astype(np.int32)
    row_of = np.empty((grids.cells // 2 - 1, len(values)), np.int16)
    _kernel().equipartition_axis(order, starts, row_of)
    return Axis(order, starts, row_of)


def _characteristic_matrices(xs: list[Axis], ys: list[Axis], grids: Grids) -> Iterator[FloatArray]:
    """M of every x with every y, indexed by rows and columns; 0 where a grid has too many cells."""
    kernel = _kernel()
    m = np.arange(len(xs[0].order) + 1, dtype=np.float64)
    f = m * np.log(np.maximum(m, 1))
    most = grids.cells // 2
    lead_of_x, lead_of_y = (most, most) if grids.estimator == "approx" else (-1, 0)

    def characteristic(pair: tuple[Axis, Axis]) -> FloatArray:
        x, y = pair
        matrix = np.zeros((most + 1, most + 1))
        options = grids.cells, grids.c
        kernel.raise_cells(x.order, x.starts, y.row_of, *options, lead_of_x, f, matrix)
        kernel.raise_cells(y.order, y.starts, x.row_of, *options, lead_of_y, f, matrix.T)
        return matrix

    threads = min(kernel.THREADS, len(xs) * len(ys))
    if threads == 1:
        yield from map(characteristic, product(xs, ys))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(characteristic, product(xs, ys))


def _kernel() -> ModuleType:
    try:
        from disentwine.metrics.disentanglement import _mic_kernel
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise UsageError("MIC and TIC need numba: pip install 'disentwine[metrics]'") from error
    return _mic_kernel


def _mic(matrix: FloatArray) -> float:
    return min(float(matrix.max()), 1.0)


def _tic(matrix: FloatArray, grids: Grids) -> float:
    count = sum(grids.cells // rows - 1 for rows in range(2, grids.cells // 2 + 1))
    return min(float(matrix.sum()) / count, 1.0)


def _score(name: str, values: FloatArray, n: int, grids: Grids) -> Score:
    """`values` (orders, d, k), the first order being the given one and the others shuffles."""
    best = values.max(axis=1).mean(axis=1)
    details: dict[str, Any] = {
        **_details(grids),
        "matrix": values[0],
        "matrix_noise_floor": _mean_of_shuffles(values),
    }
    if values.shape[1] == values.shape[2]:
        matched = np.diagonal(values, axis1=1, axis2=2)
        details["diagonal"] = matched[0]
        details["matched"] = float(matched[0].mean())
        details["matched_noise_floor"] = _mean_of_shuffles(matched.mean(axis=1))
    return Score(name, float(best[0]), n=n, noise_floor=_mean_of_shuffles(best), details=details)


def _mean_of_shuffles(values: FloatArray) -> float | None:
    return float(values[1:].mean()) if len(values) > 1 else None


def _details(grids: Grids) -> dict[str, Any]:
    return {"estimator": grids.estimator, "cells": grids.cells, "c": grids.c}
