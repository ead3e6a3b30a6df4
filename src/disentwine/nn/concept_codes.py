"""A code of its own for every concept."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from disentwine.nn.perceptron import perceptron


class ConceptCodes(nn.Module):
    r"""$g_i(u_i)$: d numbers from the value of each concept, by a small network each.

    Arguments:
        concepts: k.
        dimensions: d, numbers a concept.
        hidden: units of each network's hidden layer.

    >>> ConceptCodes(2, dimensions=3)(torch.zeros(5, 2)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(self, concepts: int, *, dimensions: int, hidden: int = 32) -> None:
        super().__init__()
        networks = [perceptron([1, hidden, dimensions]) for _ in range(concepts)]
        for network in networks:
            first, last = network[0], network[-1]
            assert isinstance(first, nn.Linear)
            assert isinstance(last, nn.Linear)
            # Standardised values spread over such kinks, and codes are about as large as they are.
            nn.init.normal_(first.weight)
            nn.init.uniform_(first.bias, -2, 2)
            nn.init.kaiming_normal_(last.weight)
        # A list of torch's own: what a plain one holds is neither trained nor saved.
        self.g = nn.ModuleList(networks)

    def forward(self, u: Tensor) -> Tensor:
        """(n, k, d) of values (n, k)."""
        return torch.stack([self.code(i, u[:, i]) for i in range(len(self.g))], dim=1)

    def code(self, i: int, value: Tensor) -> Tensor:
        """(n, d) of values (n,) of one concept."""
        code: Tensor = self.g[i](value[:, None])
        return code
