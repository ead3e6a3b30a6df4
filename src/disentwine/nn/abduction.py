"""Reading an image's own causes from it: least squares between the image and what they would paint."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

STEP = 0.01
"""Of the differences that slopes are taken from: finer than what is read, coarser than rounding errors."""


@torch.no_grad()
def least_squares(
    residuals: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    spread: Tensor,
    iterations: int,
) -> Tensor:
    r"""$\arg\min_n \tfrac12 \|r(n)\|^2 + \tfrac12 \sum_i (n_i - n_i^0)^2 / s_i^2$ of each row, by
    Levenberg and Marquardt: $n \leftarrow n + (J^\top J + \mu D)^{-1} (-J^\top r - (n - n^0)/s^2)$ with
    $D = \mathrm{diag}(J^\top J) + 1/s^2$.

    A step that does not make a row's sum smaller is not taken, and the next one of it is shorter.

    Reference: An Algorithm for Least-Squares Estimation of Nonlinear Parameters, D. Marquardt, 1963.

    Arguments:
        residuals: r of rows (n, d), (n, m); each of its own row alone.
        start: $n^0$ (n, d).
        spread: s (d,), how far from the start a solution is expected.
        iterations: steps to try.

    >>> least_squares(lambda n: 100 * (n**2 - 4), torch.ones(1, 1), spread=torch.ones(1), iterations=20)
    tensor([[2.0000]])
    """
    precision = spread**-2

    def total(r: Tensor, n: Tensor) -> Tensor:
        return 0.5 * (r.square().sum(1) + ((n - start).square() * precision).sum(1))

    n, r = start, residuals(start)
    value = total(r, n)
    damping = torch.full_like(value, 1e-3)
    moves = STEP * torch.eye(start.shape[1], dtype=start.dtype, device=start.device)
    for _ in range(iterations):
        slopes = torch.stack([(residuals(n + move) - r) / STEP for move in moves], dim=2)
        normal = slopes.mT @ slopes + torch.diag(precision)
        damped = normal + damping[:, None, None] * torch.diag_embed(normal.diagonal(0, 1, 2))
        downhill = -(slopes.mT @ r[..., None])[..., 0] - (n - start) * precision
        tried = n + torch.linalg.solve(damped, downhill)
        r_tried = residuals(tried)
        value_tried = total(r_tried, tried)
        better = value_tried < value
        n = torch.where(better[:, None], tried, n)
        r = torch.where(better[:, None], r_tried, r)
        value = torch.where(better, value_tried, value)
        damping = torch.where(better, damping / 10, damping * 10)
    return n
