"""Causal mechanisms: causal controller, categorical mechanism, Gaussian mixture noise."""

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
    r"""Causal controller $l_i = f_i(l_{pa(i)}) + n_i$ with a network $f_i$ for each concept that has
    causes; noise $n_i$ is sampled from learnt quantiles.

    Arguments:
        causes: for each concept the indices of its causes.
        order: the concepts' indices, causes before their effects.

    >>> controller = CausalController([[], [0]], order=[0, 1])
    >>> controller.sample(5).shape
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
        """$f_i$ of labels (n, k), (n,); 0 for a root concept."""
        if not self.causes[i]:
            return torch.zeros_like(labels[:, i])
        effect: Tensor = self.f[str(i)](fourier_features(labels[:, self.causes[i]], FREQUENCIES))
        return effect[:, 0]

    def noise(self, labels: Tensor) -> Tensor:
        """Residuals (n, k) of labels (n, k) on their causes."""
        effects = [self.effect(i, labels) for i in range(len(self.causes))]
        return labels - torch.stack(effects, dim=1)

    def move(self, labels: Tensor, moved: Mapping[int, Tensor]) -> Tensor:
        r"""Labels (n, k) under an intervention; effects keep their noise: $l_i' = l_i + f_i(l') - f_i(l)$.

        Non-descendants are unchanged, bit for bit.
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
    def sample(self, n: int) -> Tensor:
        """Labels (n, k) by ancestral sampling."""
        labels = self._sample_noise(n)
        for i in self.order:
            labels[:, i] += self.effect(i, labels)
        return labels

    def _sample_noise(self, n: int) -> Tensor:
        """(n, k) by linear interpolation of quantiles, which are sorted in case they have crossed."""
        quantiles = self.quantiles.sort(dim=1).values
        place = torch.rand(n, len(quantiles), device=quantiles.device, dtype=quantiles.dtype)
        place = place * (QUANTILES - 1)
        below = place.long()
        rows = torch.arange(len(quantiles), device=quantiles.device)
        low, high = quantiles[rows, below], quantiles[rows, below + 1]
        return low + (place - below) * (high - low)


class CategoricalMechanism(nn.Module):
    r"""$p(v_j | \mathrm{pa}) = \mathrm{softmax}_j(0, f_2, \ldots, f_J)$ for an effect whose only values are
    $v_1 < \ldots < v_J$, with the J - 1 logits $f = f(\mathrm{pa})$ of a network.

    Additive noise, as of `GaussianMixture`, would explain such an effect by narrow peaks at its values,
    independent of its causes.

    Arguments:
        values: $v_1, \ldots, v_J$.

    >>> mechanism = CategoricalMechanism([0.0, 1.0])
    >>> mechanism.mean(torch.tensor([[0.0], [20.0]]))
    tensor([0.5000, 1.0000])
    """

    values: Tensor

    def __init__(self, values: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("values", torch.tensor(values), persistent=False)

    def log_probability(self, u: Tensor, f: Tensor) -> Tensor:
        r"""$\log p(u | \mathrm{pa})$ (n,) of effects (n,), each rounded to the nearest value.

        >>> CategoricalMechanism([0.0, 1.0]).log_probability(torch.tensor([1.0]), torch.zeros(1, 1)).exp()
        tensor([0.5000])
        """
        return F.pad(f, (1, 0)).log_softmax(1).gather(1, self._nearest(u)[:, None])[:, 0]

    def mean(self, f: Tensor) -> Tensor:
        r"""$\sum_j v_j\, p(v_j | \mathrm{pa})$, (n,)."""
        return F.pad(f, (1, 0)).softmax(1) @ self.values

    def counterfactual(self, u: Tensor, f: Tensor, f_now: Tensor, uniform: Tensor) -> Tensor:
        r"""Effects (n,) under other causes: the values at the quantile $q$ of the values before.

        With $F$ the distribution before, $q = F(v_{j-1}) + c\, p(v_j)$ for an effect of value $v_j$, and
        $v_{j'}$ is the smallest value with $F'(v_{j'}) > q$. So effects change as little as possible, to
        one of their values; over images they follow $F'$. One that keeps its value is unchanged, also
        between values.

        Reference: Causality, J. Pearl, 2009, section 7.1: abduction, action, prediction.

        Arguments:
            u: (n,) the effects before.
            f: (n, J - 1) the network's logits before.
            f_now: its logits of the causes now.
            uniform: c (n,) in [0, 1), which does not follow from the value.

        >>> b, c = torch.zeros(4), torch.tensor([0.1, 0.4, 0.6, 0.9])
        >>> even, likely = torch.zeros(4, 1), torch.full((4, 1), 1.1)  # p(1) of one half, three quarters
        >>> CategoricalMechanism([0.0, 1.0]).counterfactual(b, even, likely, c)
        tensor([0., 0., 1., 1.])
        """
        at = self._nearest(u)
        before = F.pad(f, (1, 0)).softmax(1).cumsum(1)
        ends = F.pad(before, (1, 0)).gather(1, torch.stack([at, at + 1], dim=1))
        q = torch.lerp(ends[:, 0], ends[:, 1], uniform)
        # The shift in values, so that unchanged causes change nothing in spite of rounding.
        moved = self._above(F.pad(f_now, (1, 0)).softmax(1).cumsum(1), q) - self._above(before, q)
        now = (at + moved).clamp(0, len(self.values) - 1)
        return torch.where(now == at, u, self.values[now])

    def _nearest(self, u: Tensor) -> Tensor:
        return (u[:, None] - self.values).abs().argmin(1)

    @staticmethod
    def _above(distribution: Tensor, q: Tensor) -> Tensor:
        """Index of the first value whose distribution (n, J) exceeds q (n,)."""
        return (distribution[:, :-1] <= q[:, None]).sum(1)


def image_seeded_uniform(x: Tensor, count: int) -> Tensor:
    """Uniform samples (n, count) in [0, 1), seeded by each image: equal images have equal samples.

    >>> x = torch.rand(3, 1, 8, 8)
    >>> torch.equal(image_seeded_uniform(x, 2)[1:], image_seeded_uniform(x[1:], 2))
    True
    """
    if not count:
        return x.new_zeros(len(x), 0)
    seeds = [crc32(image.tobytes()) for image in to_uint8(x).cpu().numpy()]
    samples = np.array([np.random.default_rng(seed).random(count) for seed in seeds])
    return torch.from_numpy(samples.reshape(len(x), count)).to(x)


class GaussianMixture(nn.Module):
    r"""$p(r) = \sum_j w_j\, \mathcal{N}(r; m_j, \sigma_j^2 + s^2)$ of a scalar r.

    A mechanism $x = f(\mathrm{pa}) + r$ fitted by the likelihood of r under a learnt density is closer to
    the true one than a fit by least squares, the likelihood of Gaussian noise: the ends of bounded noise
    locate f.

    Arguments:
        components: number of Gaussians; their initial means cover two standard deviations of a
            standardised variable.
        least: s, which bounds the density of vanishing noise.

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
        r"""$\log p(r)$ of scalars (n,)."""
        variances = self.log_scales.mul(2).exp() + self.least**2
        squares = (r[:, None] - self.means).square() / variances
        log_weights = self.logits.log_softmax(0) - 0.5 * (variances.log() + math.log(2 * math.pi))
        return torch.logsumexp(log_weights - 0.5 * squares, dim=1)
