"""Levenberg-Marquardt least squares, injective decoders, and singular values of Jacobians."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from disentwine.nn.encoders import ImageShape

STEP = 0.01
"""Step of finite differences: below the accuracy of encoders, above rounding errors."""


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

    A step that does not decrease the objective of a row is rejected, and its damping $\mu$ is increased.

    Reference: An Algorithm for Least-Squares Estimation of Nonlinear Parameters, D. Marquardt, 1963.

    Arguments:
        residuals: maps rows (n, d) to r (n, m); rows are independent.
        start: $n^0$ (n, d).
        spread: s (d,), expected distance of the solution from the start.
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
    offsets = STEP * torch.eye(start.shape[1], dtype=start.dtype, device=start.device)
    for _ in range(iterations):
        J = torch.stack([(residuals(n + offset) - r) / STEP for offset in offsets], dim=2)
        normal = J.mT @ J + torch.diag(precision)
        damped = normal + damping[:, None, None] * torch.diag_embed(normal.diagonal(0, 1, 2))
        descent = -(J.mT @ r[..., None])[..., 0] - (n - start) * precision
        candidate = n + torch.linalg.solve(damped, descent)
        r_candidate = residuals(candidate)
        value_candidate = total(r_candidate, candidate)
        better = value_candidate < value
        n = torch.where(better[:, None], candidate, n)
        r = torch.where(better[:, None], r_candidate, r)
        value = torch.where(better, value_candidate, value)
        damping = torch.where(better, damping / 10, damping * 10)
    return n


SLOPE = 0.2
"""Negative slope of leaky ReLUs."""


class OverBackground(nn.Module):
    r"""Pixels $\sigma(x + b)$ from logits x, with learnt logits b of a background that all images share.

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
    """The same layers with leaky ReLUs, which are injective, in place of ReLUs.

    >>> leaky(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))[1]
    LeakyReLU(negative_slope=0.2)
    """
    layers = network.children()
    return nn.Sequential(*(nn.LeakyReLU(slope) if isinstance(m, nn.ReLU) else m for m in layers))


def smallest_singular_values(g: nn.Module, z: Tensor) -> Tensor:
    r"""Smallest singular value $\min_{\|v\| = 1} \|J v\|$ of the Jacobian J of g at each row of z; 0 if
    some direction in latent space does not affect the image.

    The columns of J are computed one at a time by double backpropagation.

    Arguments:
        g: decoder from latents to images; rows are independent.
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
        (vjp,) = torch.autograd.grad(x, z, w, create_graph=True)
        columns = [
            torch.autograd.grad(vjp, w, v.expand_as(z), retain_graph=True)[0].flatten(1)
            for v in torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        ]
    values: Tensor = torch.linalg.svdvals(torch.stack(columns, dim=-1))
    return values[:, -1]
