"""Labels drawn along a causal graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from disentwine.nn.painters import fourier_features
from disentwine.nn.perceptron import perceptron

FREQUENCIES, HIDDEN, QUANTILES = 4, 128, 32


class CausalController(nn.Module):
    r"""$l_i = f_i(l_{pa(i)}) + n_i$, with a network $f_i$ for each concept that has causes, and noise
    $n_i$ that is drawn from learnt quantiles.

    Arguments:
        causes: for each concept the places of its causes.
        order: the concepts' places, causes before their effects.

    >>> controller = CausalController([[], [0]], order=[0, 1])
    >>> controller.draw(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, causes: Sequence[Sequence[int]], *, order: Sequence[int]) -> None:
        super().__init__()
        self.causes = [list(some) for some in causes]
        self.order = list(order)
        self.f = nn.ModuleDict(
            {
                str(i): perceptron([len(some) * (1 + 2 * FREQUENCIES), HIDDEN, HIDDEN, 1])
                for i, some in enumerate(self.causes)
                if some
            }
        )
        normal = torch.special.ndtri((torch.arange(QUANTILES) + 0.5) / QUANTILES)
        self.quantiles = nn.Parameter(normal.repeat(len(self.causes), 1))

    def effect(self, i: int, labels: Tensor) -> Tensor:
        """$f_i$ of labels (n, k), (n,); 0 for a concept without causes."""
        if not self.causes[i]:
            return torch.zeros_like(labels[:, i])
        effect: Tensor = self.f[str(i)](fourier_features(labels[:, self.causes[i]], FREQUENCIES))
        return effect[:, 0]

    def noise(self, labels: Tensor) -> Tensor:
        """What causes leave unexplained of labels (n, k), (n, k)."""
        effects = [self.effect(i, labels) for i in range(len(self.causes))]
        return labels - torch.stack(effects, dim=1)

    def move(self, labels: Tensor, moved: Mapping[int, Tensor]) -> Tensor:
        r"""Labels (n, k) once some are set; effects keep their noise: $l_i' = l_i + f_i(l') - f_i(l)$.

        What is not caused by a moved concept is kept to the bit.
        """
        now = list(labels.unbind(1))
        for i, value in moved.items():
            now[i] = value
        touched = set(moved)
        for i in self.order:
            if i not in moved and touched & set(self.causes[i]):
                touched.add(i)
                change = self.effect(i, torch.stack(now, dim=1)) - self.effect(i, labels)
                now[i] = labels[:, i] + change
        return torch.stack(now, dim=1)

    @torch.no_grad()
    def draw(self, n: int) -> Tensor:
        """Labels (n, k): noise first, then effects after their causes."""
        labels = self._draw_noise(n)
        for i in self.order:
            labels[:, i] += self.effect(i, labels)
        return labels

    def _draw_noise(self, n: int) -> Tensor:
        """(n, k) on straight lines between quantiles, which are sorted in case they have crossed."""
        quantiles = self.quantiles.sort(dim=1).values
        place = torch.rand(n, len(quantiles), device=quantiles.device, dtype=quantiles.dtype)
        place = place * (QUANTILES - 1)
        below = place.long()
        rows = torch.arange(len(quantiles), device=quantiles.device)
        low, high = quantiles[rows, below], quantiles[rows, below + 1]
        return low + (place - below) * (high - low)
