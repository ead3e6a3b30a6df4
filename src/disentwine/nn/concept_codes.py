"""A code of its own for every concept."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ConceptCodes(nn.Module):
    r"""$g_i(u_i)$: d numbers from the value of each concept, by a network of one hidden layer each.

    Arguments:
        concepts: k.
        dimensions: d, numbers a concept.
        hidden: units of each network.

    >>> ConceptCodes(2, dimensions=3)(torch.zeros(5, 2)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(self, concepts: int, *, dimensions: int, hidden: int = 32) -> None:
        super().__init__()
        # Standardised values spread over such kinks, and codes are about as large as they are.
        self.slopes = nn.Parameter(torch.randn(concepts, hidden))
        self.offsets = nn.Parameter(4 * torch.rand(concepts, hidden) - 2)
        self.weights = nn.Parameter(torch.randn(concepts, hidden, dimensions) * (2 / hidden) ** 0.5)
        self.biases = nn.Parameter(torch.zeros(concepts, dimensions))

    def forward(self, u: Tensor) -> Tensor:
        """(n, k, d) of values (n, k)."""
        bent = torch.relu(u[..., None] * self.slopes + self.offsets)
        return torch.einsum("nkh,khd->nkd", bent, self.weights) + self.biases

    def code(self, i: int, value: Tensor) -> Tensor:
        """(n, d) of values (n,) of one concept."""
        bent = torch.relu(value[:, None] * self.slopes[i] + self.offsets[i])
        return bent @ self.weights[i] + self.biases[i]
