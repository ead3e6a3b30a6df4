"""Levenberg-Marquardt least squares, injective decoders, and singular values of Jacobians."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from disentwine.nn.encoders import ImageShape

STEP = 0.01
"""Step of finite differences: finer than encoders resolve, coarser than rounding errors."""


@torch.no_grad()
def least_squares(
    residuals: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    spread: Tensor,
    iterations: int,
) -> Tensor:
    r"""Least squares $\arg\min_n \tfrac12 \|r(n)\|^2 + \tfrac12 \sum_i (n_i - n_i^0)^2 / s_i^2$ of each
    row by Levenberg-Marquardt: $n \leftarrow n + (J^\top J + \mu D)^{-1} (-J^\top r - (n - n^0)/s^2)$,
    $D = \mathrm{diag}(J^\top J) + 1/s^2$.

    A step that does not decrease a row's sum is rejected, and the next one is shorter.

    Reference: An Algorithm for Least-Squares Estimation of Nonlinear Parameters, D. Marquardt, 1963.

    Arguments:
        residuals: r of rows (n, d), (n, m); rows are independent.
        start: $n^0$ (n, d).
        spread: s (d,), expected distance of a solution from the start.
        iterations: number of steps.

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


SLOPE = 0.2


class OverBackground(nn.Module):
    r"""$\sigma(x + b)$: pixels from logits x and the logits b of a background that all images share.

    Arguments:
        image_shape: (height, width, channels).

    >>> OverBackground((2, 2, 1))(torch.zeros(3, 1, 2, 2)).mean().item()
    0.5
    """

    def __init__(self, image_shape: ImageShape) -> None:
        super().__init__()
        height, width, channels = image_shape
        self.background = nn.Parameter(torch.zeros(channels, height, width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x + self.background)


def leaky(network: nn.Module, slope: float = SLOPE) -> nn.Sequential:
    """The same layers with leaky (injective) rectifiers in place of rectifiers.

    >>> leaky(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))[1]
    LeakyReLU(negative_slope=0.2)
    """
    layers = network.children()
    return nn.Sequential(*(nn.LeakyReLU(slope) if isinstance(m, nn.ReLU) else m for m in layers))


def smallest_singular_values(g: nn.Module, z: Tensor) -> Tensor:
    r"""Smallest singular value $\min_{\|v\| = 1} \|J v\|$ of the Jacobian J of g at each row of z: 0 where
    some direction of the latents does not affect the image.

    Columns of J are computed one direction at a time, at a few passes each.

    Arguments:
        g: images of latents; rows are independent.
        z: (n, d) latents.

    Returns:
        (n,).

    >>> smallest_singular_values(nn.Linear(2, 3, bias=False), torch.zeros(1, 2)).shape
    torch.Size([1])
    """
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        x: Tensor = g(z)
        w = torch.zeros_like(x, requires_grad=True)
        # J^T w is linear in w, so its derivative in the direction v is J v.
        (pulled,) = torch.autograd.grad(x, z, w, create_graph=True)
        columns = [
            torch.autograd.grad(pulled, w, v.expand_as(z), retain_graph=True)[0].flatten(1)
            for v in torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        ]
    values: Tensor = torch.linalg.svdvals(torch.stack(columns, dim=-1))
    return values[:, -1]
