"""Causal mechanisms: the causal controller, categorical values, Gaussian mixture noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from disentwine.nn.encoders import perceptron
from disentwine.nn.images import to_uint8
from disentwine.nn.layered_decoder import fourier_features

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


class CategoricalMechanism(nn.Module):
    r"""$p(v_j | \mathrm{pa}) = \mathrm{softmax}_j(0, f_2, \ldots, f_J)$ for an effect whose only values are
    $v_1 < \ldots < v_J$, with $f = f(\mathrm{pa})$ the J - 1 numbers that a network makes of its causes.

    Noise that is added, as of `GaussianMixture`, would explain such an effect by narrow peaks at its
    values, whatever its causes are.

    Arguments:
        values: $v_1, \ldots, v_J$.

    >>> levels = CategoricalMechanism([0.0, 1.0])
    >>> levels.mean(torch.tensor([[0.0], [20.0]]))
    tensor([0.5000, 1.0000])
    """

    values: Tensor

    def __init__(self, values: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("values", torch.tensor(values), persistent=False)

    def log_probability(self, u: Tensor, f: Tensor) -> Tensor:
        r"""$\log p(u | \mathrm{pa})$ (n,) of effects (n,), each taken for the value nearest to it.

        >>> CategoricalMechanism([0.0, 1.0]).log_probability(torch.tensor([1.0]), torch.zeros(1, 1)).exp()
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
        >>> CategoricalMechanism([0.0, 1.0]).carried(b, even, likely, chance)
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
