"""The importance-weighted bound, and the densities of which its weights are made."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def importance_weighted_bound(log_weights: Tensor) -> Tensor:
    r"""$\mathcal{L}_K = \log \frac1K \sum_{k=1}^K w_k \le \log p(x)$, $w_k = \frac{p(x, z_k)}{q(z_k|x)}$.

    With one sample it is the usual bound's one-sample estimate; in expectation it rises with K.

    Reference: Importance Weighted Autoencoders, Y. Burda, R. Grosse and R. Salakhutdinov, 2016, eq. 8.

    Arguments:
        log_weights: $\log w$, (K, n).

    Returns:
        (n,) nats.

    >>> importance_weighted_bound(torch.tensor([[0.5], [0.1]]).log()).exp()  # (.5 + .1) / 2
    tensor([0.3000])
    """
    return torch.logsumexp(log_weights, dim=0) - math.log(len(log_weights))


def gaussian_log_density(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$\log \mathcal{N}(z; \mu, \sigma^2) = -\tfrac12\big((z - \mu)^2 \sigma^{-2} + \log\sigma^2
    + \log 2\pi\big)$ of each number, in the shape of `z`.

    >>> gaussian_log_density(torch.zeros(2), torch.zeros(2), torch.zeros(2))
    tensor([-0.9189, -0.9189])
    """
    squares = (z - mean).square() * torch.exp(-log_variance)
    return -0.5 * (squares + log_variance + math.log(2 * math.pi))


def kl_between_gaussians(
    mean_q: Tensor, log_variance_q: Tensor, mean_p: Tensor, log_variance_p: Tensor
) -> Tensor:
    r"""$D_{KL}(q\,\|\,p) = \tfrac12\big(\tfrac{\sigma_q^2}{\sigma_p^2} - 1 - \log\tfrac{\sigma_q^2}
    {\sigma_p^2} + \tfrac{(\mu_q - \mu_p)^2}{\sigma_p^2}\big)$ of each latent dimension, in nats.

    >>> zero, one = torch.zeros(1), torch.ones(1)
    >>> kl_between_gaussians(one, zero, zero, zero)
    tensor([0.5000])
    """
    ratio = log_variance_q - log_variance_p
    squares = (mean_q - mean_p).square() * torch.exp(-log_variance_p)
    return 0.5 * (squares + torch.expm1(ratio) - ratio)
