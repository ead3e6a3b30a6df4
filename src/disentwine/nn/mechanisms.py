"""Causal controller, categorical mechanism, and Gaussian mixture noise."""

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
    r"""Causal controller $l_i = f_i(l_{pa(i)}) + n_i$ with a network $f_i$ for each concept with
    causes; noise $n_i$ is sampled from learnt quantiles.

    Arguments:
        causes: indices of the causes of each concept.
        order: indices of the concepts in topological order.

    >>> controller = CausalController([[], [0]], order=[0, 1])
    >>> controller.sample(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, causes: Sequence[Sequence[int]], *, order: Sequence[int]) -> None:
        super().__init__()
        self.causes = [list(indices) for indices in causes]
        self.order = list(order)
        self.f = nn.ModuleDict(
            {
                str(i): perceptron([len(indices) * (1 + 2 * FREQUENCIES), HIDDEN, HIDDEN, 1])
                for i, indices in enumerate(self.causes)
                if indices
            }
        )
        normal = torch.special.ndtri((torch.arange(QUANTILES) + 0.5) / QUANTILES)
        self.quantiles = nn.Parameter(normal.repeat(len(self.causes), 1))

    def effect(self, i: int, labels: Tensor) -> Tensor:
        """$f_i$ (n,) of labels (n, k); 0 for a root concept."""
        if not self.causes[i]:
            return torch.zeros_like(labels[:, i])
        effect: Tensor = self.f[str(i)](fourier_features(labels[:, self.causes[i]], FREQUENCIES))
        return effect[:, 0]

    def noise(self, labels: Tensor) -> Tensor:
        """Residuals (n, k) of labels (n, k) on their causes."""
        effects = [self.effect(i, labels) for i in range(len(self.causes))]
        return labels - torch.stack(effects, dim=1)

    def intervene(self, labels: Tensor, interventions: Mapping[int, Tensor]) -> Tensor:
        r"""Labels (n, k) under interventions; noise is kept: $l_i' = l_i + f_i(l') - f_i(l)$.

        Non-descendants are unchanged, bit for bit.
        """
        after = list(labels.unbind(1))
        for i, value in interventions.items():
            after[i] = value
        changed = set(interventions)
        for i in self.order:
            if i not in interventions and changed & set(self.causes[i]):
                changed.add(i)
                change = self.effect(i, torch.stack(after, dim=1)) - self.effect(i, labels)
                after[i] = labels[:, i] + change
        return torch.stack(after, dim=1)

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Labels (n, k) by ancestral sampling."""
        labels = self._sample_noise(n)
        for i in self.order:
            labels[:, i] += self.effect(i, labels)
        return labels

    def _sample_noise(self, n: int) -> Tensor:
        """Noise (n, k) by linear interpolation of the quantiles, which are sorted as they may cross."""
        quantiles = self.quantiles.sort(dim=1).values
        position = torch.rand(n, len(quantiles), device=quantiles.device, dtype=quantiles.dtype)
        position = position * (QUANTILES - 1)
        below = position.long()
        rows = torch.arange(len(quantiles), device=quantiles.device)
        low, high = quantiles[rows, below], quantiles[rows, below + 1]
        return low + (position - below) * (high - low)


class CategoricalMechanism(nn.Module):
    r"""$p(v_j | \mathrm{pa}) = \mathrm{softmax}_j(0, f_2, \ldots, f_J)$ for an effect with the values
    $v_1 < \ldots < v_J$, with J - 1 logits $f = f(\mathrm{pa})$ from a network.

    Additive noise (`GaussianMixture`) would explain such an effect by narrow peaks at its values,
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

    def counterfactual(self, u: Tensor, f: Tensor, f_after: Tensor, uniform: Tensor) -> Tensor:
        r"""Counterfactual effects (n,) at the quantiles q of the factual ones.

        With $F$ the factual distribution, $q = F(v_{j-1}) + c\, p(v_j)$ for an effect of value $v_j$; the
        counterfactual is the smallest value $v_{j'}$ with $F'(v_{j'}) > q$. Effects therefore change as
        little as possible, and over images they follow $F'$. An effect between two values is unchanged
        if its nearest value is.

        Reference: Causality, J. Pearl, 2009, section 7.1: abduction, action, prediction.

        Arguments:
            u: (n,) factual effects.
            f: (n, J - 1) logits given the factual causes.
            f_after: (n, J - 1) logits given the counterfactual causes.
            uniform: c (n,) in [0, 1), which the value does not determine.

        >>> b, c = torch.zeros(4), torch.tensor([0.1, 0.4, 0.6, 0.9])
        >>> f, f_after = torch.zeros(4, 1), torch.full((4, 1), 1.1)  # p(1) = 1/2 and 3/4
        >>> CategoricalMechanism([0.0, 1.0]).counterfactual(b, f, f_after, c)
        tensor([0., 0., 1., 1.])
        """
        index = self._nearest(u)
        before = F.pad(f, (1, 0)).softmax(1).cumsum(1)
        bounds = F.pad(before, (1, 0)).gather(1, torch.stack([index, index + 1], dim=1))
        q = torch.lerp(bounds[:, 0], bounds[:, 1], uniform)
        # A difference of indices, so that rounding changes nothing if the causes are unchanged.
        shift = self._above(F.pad(f_after, (1, 0)).softmax(1).cumsum(1), q) - self._above(before, q)
        after = (index + shift).clamp(0, len(self.values) - 1)
        return torch.where(after == index, u, self.values[after])

    def _nearest(self, u: Tensor) -> Tensor:
        return (u[:, None] - self.values).abs().argmin(1)

    @staticmethod
    def _above(distribution: Tensor, q: Tensor) -> Tensor:
        """Index of the first value whose distribution (n, J) exceeds q (n,)."""
        return (distribution[:, :-1] <= q[:, None]).sum(1)


def image_seeded_uniform(x: Tensor, count: int) -> Tensor:
    """Uniform samples (n, count) in [0, 1), seeded by each image, so that equal images have equal samples.

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

    As a learnt noise density, it fits mechanisms $x = f(\mathrm{pa}) + r$ more accurately than min_std
    squares, which is maximum likelihood for Gaussian noise only: for bounded noise, the bounds locate f.

    Arguments:
        components: number of Gaussians; their initial means cover two standard deviations of a
            standardised variable.
        min_std: s, lower bound of the standard deviation, which bounds the density.

    >>> GaussianMixture(min_std=0.01).log_density(torch.zeros(5)).shape
    torch.Size([5])
    """

    def __init__(self, *, components: int = 8, min_std: float) -> None:
        super().__init__()
        self.min_std = min_std
        self.means = nn.Parameter(torch.linspace(-2, 2, components))
        self.log_scales = nn.Parameter(torch.full((components,), -0.5))
        self.logits = nn.Parameter(torch.zeros(components))

    def log_density(self, r: Tensor) -> Tensor:
        r"""$\log p(r)$ of scalars (n,)."""
        variances = self.log_scales.mul(2).exp() + self.min_std**2
        squares = (r[:, None] - self.means).square() / variances
        log_weights = self.logits.log_softmax(0) - 0.5 * (variances.log() + math.log(2 * math.pi))
        return torch.logsumexp(log_weights - 0.5 * squares, dim=1)
