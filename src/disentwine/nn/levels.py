"""Effects of few values: how likely causes make each, and which one an image would have had instead."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.pictures import to_uint8


class Levels(nn.Module):
    r"""$p(v_j | \mathrm{pa}) = \mathrm{softmax}_j(0, f_2, \ldots, f_J)$ for an effect whose only values are
    $v_1 < \ldots < v_J$, with $f = f(\mathrm{pa})$ the J - 1 numbers that a network makes of its causes.

    Noise that is added, as of `GaussianMixture`, would explain such an effect by narrow peaks at its
    values, whatever its causes are.

    Arguments:
        values: $v_1, \ldots, v_J$.

    >>> levels = Levels([0.0, 1.0])
    >>> levels.mean(torch.tensor([[0.0], [20.0]]))
    tensor([0.5000, 1.0000])
    """

    values: Tensor

    def __init__(self, values: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("values", torch.tensor(values), persistent=False)

    def log_probability(self, u: Tensor, f: Tensor) -> Tensor:
        r"""$\log p(u | \mathrm{pa})$ (n,) of effects (n,), each taken for the value nearest to it.

        >>> Levels([0.0, 1.0]).log_probability(torch.tensor([1.0]), torch.zeros(1, 1)).exp()
        tensor([0.5000])
        """
        return F.pad(f, (1, 0)).log_softmax(1).gather(1, self._nearest(u)[:, None])[:, 0]

    def mean(self, f: Tensor) -> Tensor:
        r"""$\sum_j v_j\, p(v_j | \mathrm{pa})$, (n,)."""
        return F.pad(f, (1, 0)).softmax(1) @ self.values

    def carried(self, u: Tensor, f: Tensor, f_now: Tensor, chance: Tensor) -> Tensor:
        r"""Effects (n,) once causes are others: the values at the quantile $q$ where they were before.

        With $F$ the distribution before, $q = F(v_{j-1}) + c\, p(v_j)$ for an effect of value $v_j$, and
        $v_{j'}$ is the smallest value with $F'(v_{j'}) > q$. So an effect moves no further than it must
        and stays among its values; over images it has the distribution that its new causes give it.
        One that keeps its value is left as it is.

        Reference: Causality, J. Pearl, 2009, section 7.1: abduction, action, prediction.

        Arguments:
            u: (n,) the effects before.
            f: (n, J - 1) what the network made of their causes.
            f_now: the same of their causes now.
            chance: c (n,) in [0, 1), which the value alone does not tell.

        >>> b, chance = torch.zeros(4), torch.tensor([0.1, 0.4, 0.6, 0.9])
        >>> even, likely = torch.zeros(4, 1), torch.full((4, 1), 1.1)  # p(1) of one half, three quarters
        >>> Levels([0.0, 1.0]).carried(b, even, likely, chance)
        tensor([0., 0., 1., 1.])
        """
        at = self._nearest(u)
        before = F.pad(f, (1, 0)).softmax(1).cumsum(1)
        ends = F.pad(before, (1, 0)).gather(1, torch.stack([at, at + 1], dim=1))
        q = torch.lerp(ends[:, 0], ends[:, 1], chance)
        # By how many values, so that causes that stay move nothing even where rounding errs.
        moved = self._above(F.pad(f_now, (1, 0)).softmax(1).cumsum(1), q) - self._above(before, q)
        now = (at + moved).clamp(0, len(self.values) - 1)
        return torch.where(now == at, u, self.values[now])

    def _nearest(self, u: Tensor) -> Tensor:
        return (u[:, None] - self.values).abs().argmin(1)

    @staticmethod
    def _above(distribution: Tensor, q: Tensor) -> Tensor:
        """The place of the first value whose distribution (n, J) exceeds q (n,)."""
        return (distribution[:, :-1] <= q[:, None]).sum(1)


def chances(x: Tensor, count: int) -> Tensor:
    """(n, count) numbers in [0, 1) as though drawn at random, yet always the same of the same image.

    >>> x = torch.rand(3, 1, 8, 8)
    >>> torch.equal(chances(x, 2)[1:], chances(x[1:], 2))
    True
    """
    if not count:
        return x.new_zeros(len(x), 0)
    seeds = [crc32(picture.tobytes()) for picture in to_uint8(x).cpu().numpy()]
    drawn = np.array([np.random.default_rng(seed).random(count) for seed in seeds])
    return torch.from_numpy(drawn.reshape(len(x), count)).to(x)
