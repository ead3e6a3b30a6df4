"""Maximal and total information coefficients: dependence of any shape, on a scale from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from disentwine.contracts.dataset import FloatArray
from disentwine.contracts.score import Score
from disentwine.errors import UsageError, did_you_mean
from disentwine.metrics.inputs import as_table, canonical_order

Estimator = Literal["approx", "e"]

FEWEST = 4
"""Samples: one for each cell of the smallest grid."""


class Axis(NamedTuple):
    """One variable, prepared once for all its partners: see `_mine_kernel.raise_cells`."""

    order: NDArray[np.int32]
    starts: NDArray[np.int32]
    row_of: NDArray[np.int32]


class Grids(NamedTuple):
    """Which grids are tried."""

    cells: int
    c: float
    estimator: Estimator


def mic(
    x: ArrayLike, y: ArrayLike, *, alpha: float = 0.6, c: float = 15, estimator: Estimator = "approx"
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
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    alpha: float = 0.6,
    c: float = 15,
    estimator: Estimator = "approx",
    seed: int = 0,
    floor_permutations: int = 3,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Score, Score]:
    """MIC and normalised TIC of every code with every factor; a factor counts by its best code.

    The value is the mean over factors of the largest value over codes. Pairs run on as many threads
    as NUMBA_NUM_THREADS says (by default one a core).

    Arguments:
        codes: (n, d).
        factors: (n, k).
        alpha, c, estimator: as in `mic`.
        seed: of the noise floor.
        floor_permutations: how many shuffles of the codes the noise floor is a mean of; 0 for none.
        progress: called with the number of pairs done and of all pairs, those of shuffles included.

    Details: the `matrix` (d, k); where d = k also its `diagonal`, for codes that are meant to match
    the factors one by one, with the mean `matched` and its own `matched_noise_floor`.

    >>> v = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    >>> mic_score, tic_score = mine(v[:, ::-1], v)
    >>> mic_score.details["matrix"].round(6)
    array([[0., 1.],
           [1., 0.]])
    """
    z, v = as_table(codes, "codes"), as_table(factors, "factors")
    grids = _checked(z, v, ("codes", "factors"), alpha, c, estimator)
    if floor_permutations < 0:
        raise UsageError(f"floor_permutations must be 0 or more; got {floor_permutations}")
    order = canonical_order(np.hstack([z, v]))
    z, v = z[order], v[order]
    random = np.random.default_rng([seed, 1])
    orders = [np.arange(len(z)), *(random.permutation(len(z)) for _ in range(floor_permutations))]
    partners = [_axis(column, grids) for column in v.T]
    pairs = ((_axis(z[o, i], grids), partner) for o in orders for i in range(z.shape[1]) for partner in partners)
    shape = (len(orders), z.shape[1], v.shape[1])
    both = np.empty((math.prod(shape), 2))
    for done, matrix in enumerate(_characteristics(pairs, grids)):
        both[done] = _mic(matrix), _tic(matrix, grids)
        if progress is not None:
            progress(done + 1, len(both))
    matrices = both.reshape(*shape, 2)
    return (
        _score("mic", matrices[..., 0], len(z), grids),
        _score("tic", matrices[..., 1], len(z), grids),
    )
