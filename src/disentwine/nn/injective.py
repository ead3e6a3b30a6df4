"""Decoders that tell every code from every other, and how well they do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from disentwine.nn.convolutional import ImageShape

SLOPE = 0.2


class OverBackground(nn.Module):
    r"""$\sigma(x + b)$: brightness from logits beside those of a picture b that all images share.

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
    """The same layers in a row with leaky rectifiers, which lose nothing, for those that cut off.

    >>> leaky(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))[1]
    LeakyReLU(negative_slope=0.2)
    """
    layers = network.children()
    return nn.Sequential(*(nn.LeakyReLU(slope) if isinstance(m, nn.ReLU) else m for m in layers))


def smallest_singular_values(g: nn.Module, z: Tensor) -> Tensor:
    r"""The least $\|J v\|$ over directions $\|v\| = 1$, J being the Jacobian of g at each code: 0 where
    some direction of the code does not show in the image.

    Columns of J are found a direction at a time, which costs a few passes each, and not one a pixel.

    Arguments:
        g: images of codes, each of its own code alone.
        z: (n, d) codes.

    Returns:
        (n,).

    >>> smallest_singular_values(nn.Linear(2, 3, bias=False), torch.zeros(1, 2)).shape
    torch.Size([1])
    """
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        x: Tensor = g(z)
        w = torch.zeros_like(x, requires_grad=True)
        # J^T w is linear in w, so that its own derivative in the direction v is J v.
        (pulled,) = torch.autograd.grad(x, z, w, create_graph=True)
        columns = [
            torch.autograd.grad(pulled, w, v.expand_as(z), retain_graph=True)[0].flatten(1)
            for v in torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
        ]
    values: Tensor = torch.linalg.svdvals(torch.stack(columns, dim=-1))
    return values[:, -1]
