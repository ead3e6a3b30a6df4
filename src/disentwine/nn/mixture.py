"""A density that is learnt: what noise of a mechanism looks like, whatever its shape."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class GaussianMixture(nn.Module):
    r"""$p(r) = \sum_j w_j\, \mathcal{N}(r; m_j, \sigma_j^2 + s^2)$ of one number r.

    A mechanism $x = f(\mathrm{pa}) + r$ that is fitted by the likelihood of r under a density learnt
    beside it comes closer to the true one than by least squares, which is the likelihood of Gaussian
    noise: noise that ends somewhere tells where f is by its ends.

    Arguments:
        components: how many Gaussians; they start side by side over two deviations of a standardised
            number.
        least: s, so that noise which vanishes has no infinite density.

    >>> GaussianMixture(least=0.01).log_density(torch.zeros(5)).shape
    torch.Size([5])
    """

    def __init__(self, *, components: int = 8, least: float) -> None:
        super().__init__()
        self.least = least
        self.means = nn.Parameter(torch.linspace(-2, 2, components))
        self.log_scales = nn.Parameter(torch.full((components,), -0.5))
        self.logits = nn.Parameter(torch.zeros(components))

    def log_density(self, r: Tensor) -> Tensor:
        r"""$\log p(r)$ of each number (n,)."""
        variances = self.log_scales.mul(2).exp() + self.least**2
        squares = (r[:, None] - self.means).square() / variances
        log_weights = self.logits.log_softmax(0) - 0.5 * (variances.log() + math.log(2 * math.pi))
        return torch.logsumexp(log_weights - 0.5 * squares, dim=1)
