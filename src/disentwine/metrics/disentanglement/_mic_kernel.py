"""The compiled part of MIC and TIC: equipartitions, clumps and the search for the best columns.

With f(m) = m ln m, the mutual information of a grid of n points with rows Q and columns P is

    I = H(Q) + 1/n sum_P (sum_Q f(points in both P and Q) - f(points in P)),

a sum over columns: the best l columns follow from the best l - 1, and f is a table on integers.

Functions are named after the algorithms of the supplement of Detecting Novel Associations in Large
Data Sets, D. Reshef et al., 2011. All release the interpreter lock and share nothing, so that
threads may run them side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int32]
Rows = NDArray[np.int16]
Counts = NDArray[np.uint32]  # unsigned, since the compiler then gathers from f without a sign check
Reals = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., object])

THREADS = int(getattr(numba.config, "NUMBA_NUM_THREADS"))  # noqa: B009 - set when numba loads


def inner(function: Function) -> Function:
    return cast(Function, numba.njit(nogil=True)(function))


def entry(signature: str) -> Callable[[Function], Function]:
    """Compile at once; keep the machine code for the next process only where it can be written."""

    def compiled(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(signature, nogil=True, cache=True)(function))
        except (OSError, RuntimeError):
            return cast(Function, numba.njit(signature, nogil=True)(function))

    return compiled


@inner
def equipartition(sizes: Integers, groups: int, parts: int, part_of: Integers) -> int:
    """Deal whole groups into at most `parts` parts of nearly equal size; return how many there are.

    A part is closed when the next group would leave it no nearer to its fair share of the rest:
    |filled + size - rest / left| >= |filled - rest / left|, here multiplied out to be exact.
    """
    unseen = 0
    for group in range(groups):
        unseen += sizes[group]
    part, filled, rest = 0, 0, unseen
    for group in range(groups):
        if filled > 0 and (2 * filled + sizes[group]) * (parts - part) >= 2 * rest:
            part += 1
            filled, rest = 0, unseen
        part_of[group] = part
        filled += sizes[group]
        unseen -= sizes[group]
    return part + 1


@entry("void(int32[::1], int32[::1], int16[:, ::1])")
def equipartition_axis(order: Integers, starts: Integers, row_of: Rows) -> None:
    """Write the row of each point into `row_of[rows - 2]`, for every number of rows from 2 on."""
    groups = len(starts) - 1
    sizes = starts[1:] - starts[:-1]
    part_of = np.empty(groups, np.int32)
    for grid in range(len(row_of)):
        equipartition(sizes, groups, grid + 2, part_of)
        for group in range(groups):
            for place in range(starts[group], starts[group + 1]):
                row_of[grid, order[place]] = part_of[group]


@inner
def clumps(starts: Integers, row_at: Integers, sizes: Integers) -> int:
    """Write the sizes of the runs of points that no column border need cut; return their number.

    Points that share their place on the axis but not their row are a clump of their own.
    """
    count, previous = 0, -1
    for group in range(len(starts) - 1):
        row = row_at[starts[group]]
        for place in range(starts[group] + 1, starts[group + 1]):
            if row_at[place] != row:
                row = -1
                break
        if row == -1 or row != previous:
            sizes[count] = 0
            count += 1
        sizes[count - 1] += starts[group + 1] - starts[group]
        previous = row
    return count


@inner
def superclumps(sizes: Integers, count: int, most: int, part_of: Integers) -> int:
    """Write the superclump of each clump: itself, or one of `most` where there are more clumps."""
    if count > most:
        return equipartition(sizes, count, most, part_of)
    for clump in range(count):
        part_of[clump] = clump
    return count


@inner
def count_points(
    sizes: Integers, count: int, part_of: Integers, row_at: Integers, upto: Counts
) -> None:
    """Write into `upto[row, t]` the points of a row in the first t parts, the last row being all."""
    every, place = len(upto) - 1, 0
    upto[:, 0] = 0
    for clump in range(count):
        t = part_of[clump] + 1
        if clump == 0 or part_of[clump - 1] != part_of[clump]:
            upto[:, t] = upto[:, t - 1]
        upto[every, t] += sizes[clump]
        for _ in range(sizes[clump]):
            upto[row_at[place], t] += 1
            place += 1


@inner
def optimize_axis(upto: Counts, parts: int, f: Reals, gain: Reals, best: Reals) -> None:
    """Write into `best[t, l - 1]` the largest sum over at most l columns of the first t parts.

    `gain[s]` is the term of a column from part s up to part t. Taking four borders s at a time
    halves the time: the sums stay in registers and the inner loop runs on whole vectors.
    """
    every, more = len(upto) - 1, best.shape[1] - 1
    for t in range(1, parts + 1):
        for s in range(t):
            gain[s] = -f[upto[every, t] - upto[every, s]]
        for row in range(every):
            for s in range(t):
                gain[s] += f[upto[row, t] - upto[row, s]]
        best[t, :] = gain[0]
        top = best[t, 1:]
        for s in range(1, t - 3, 4):
            a, b, c, d = best[s], best[s + 1], best[s + 2], best[s + 3]
            to_a, to_b, to_c, to_d = gain[s], gain[s + 1], gain[s + 2], gain[s + 3]
            for l in range(more):  # noqa: E741 - the paper's name
                ab = max(a[l] + to_a, b[l] + to_b)
                cd = max(c[l] + to_c, d[l] + to_d)
                top[l] = max(top[l], max(ab, cd))
        for s in range(1 + (t - 1) // 4 * 4, t):
            for l in range(more):  # noqa: E741
                top[l] = max(top[l], best[s, l] + gain[s])


@entry(
    "void(int32[::1], int32[::1], int16[:, ::1], int64, float64, int64, float64[::1], float64[:, :])"
)
def raise_cells(
    order: Integers,
    starts: Integers,
    row_of: Rows,
    cells: int,
    c: float,
    lead: int,
    f: Reals,
    matrix: Reals,
) -> None:
    """Raise `matrix[rows, columns]` to what the best columns reach on equipartitioned rows.

    Arguments:
        order: the points in increasing order along the axis of the columns.
        starts: where in `order` each distinct value starts, then the number of points.
        row_of: from `equipartition_axis` of the other axis.
        cells: the most cells of a grid.
        c: superclumps for each column.
        lead: by how many the columns may outnumber the rows.
        f: m ln m for m from 0 to the number of points.
        matrix: normalised mutual information, 0 where nothing is known yet.
    """
    points = len(order)
    widest = cells // 2
    most = max(int(min(c * widest, points)), 1)
    row_at, sizes, part_of = np.empty((3, points), np.int32)
    counts = np.empty((len(row_of) + 2, most + 1), np.uint32)
    gain = np.empty(most, np.float64)
    sums = np.empty((most + 1) * widest, np.float64)
    for grid in range(len(row_of)):
        widest = cells // (grid + 2)
        columns = min(widest, grid + 2 + lead)
        rows = 0
        for place in range(points):
            row_at[place] = row_of[grid, order[place]]
            rows = max(rows, row_at[place] + 1)
        if columns < 2 or rows < 2:
            continue
        count = clumps(starts, row_at, sizes)
        parts = superclumps(sizes, count, max(int(min(c * widest, points)), 1), part_of)
        upto = counts[: rows + 1]
        count_points(sizes, count, part_of, row_at, upto)
        best = sums[: (parts + 1) * columns].reshape(parts + 1, columns)
        optimize_axis(upto, parts, f, gain, best)
        entropy = f[points]
        for row in range(rows):
            entropy -= f[upto[row, parts]]
        for l in range(2, columns + 1):  # noqa: E741
            # Ties may leave fewer rows than asked for, and those are what bounds the information.
            share = (entropy + best[parts, l - 1]) / (points * np.log(min(rows, l)))
            matrix[grid + 2, l] = max(matrix[grid + 2, l], share)
