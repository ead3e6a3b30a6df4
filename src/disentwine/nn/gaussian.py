"""The diagonal Gaussian that encoders return."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class DiagonalGaussian:
    r"""$\mathcal{N}(\mu, \mathrm{diag}(\sigma^2))$ for each sample.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).
    """

    mean: Tensor
    log_variance: Tensor

    @classmethod
    def from_features(cls, features: Tensor) -> DiagonalGaussian:
        """Read mean and log-variance from the two halves of a network's output (n, 2d).

        Of a network in half precision they are in single precision: moments of a batch, and densities
        of codes, are sums that half of the digits do not hold.

        >>> DiagonalGaussian.from_features(torch.zeros(5, 20)).mean.shape
        torch.Size([5, 10])
        """
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        mean, log_variance = features.chunk(2, dim=1)
        return cls(mean, log_variance)

    def sample(self) -> Tensor:
        r"""$z = \mu + \sigma \odot \epsilon$, so that gradients reach $\mu$ and $\sigma$."""
        return self.mean + torch.exp(0.5 * self.log_variance) * torch.randn_like(self.mean)
