"""Labels that new images are drawn from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

ROWS = 1000


class LabelTable(nn.Module):
    """The labels of some training images, which new images are drawn from; saved with the weights.

    Until it is filled it holds standard normal numbers, as standardised labels roughly are.

    Arguments:
        labels: k, columns of the table.

    >>> table = LabelTable(2)
    >>> table.fill(torch.tensor([[1.0, 2.0]]))
    >>> table.draw(3)
    tensor([[1., 2.],
            [1., 2.],
            [1., 2.]])
    """

    rows: Tensor

    def __init__(self, labels: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("rows", torch.randn(ROWS, labels, generator=generator))

    def fill(self, u: Tensor) -> None:
        """Keep labels (n, k): some of them where there are many, each several times where few."""
        order = torch.randperm(len(u), generator=torch.Generator().manual_seed(0))
        self.rows.copy_(u[order[torch.arange(ROWS) % len(u)]])

    def draw(self, n: int) -> Tensor:
        """(n, k) labels that belong together."""
        return self.rows[torch.randint(ROWS, (n,), device=self.rows.device)]
