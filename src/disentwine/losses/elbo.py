"""Pixel likelihoods, Gaussian densities and KL divergences, importance-weighted bound."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

SOFTPLUS_THRESHOLD = 40.0
"""Logit above which softplus(l) equals l in double precision."""


def bernoulli_log_likelihood(x: Tensor, logits: Tensor) -> Tensor:
    r"""$\log p(x|z) = \sum_i x_i \log \pi_i + (1 - x_i) \log(1 - \pi_i)$, with $\pi$ = sigmoid(logits).

    Reference: Auto-Encoding Variational Bayes, D. Kingma and M. Welling, 2014, appendix C.1.

    Arguments:
        x: (n, ...) values in [0, 1].
        logits: (n, ...) of the same shape.

    Returns:
        (n,) nats.

    >>> bernoulli_log_likelihood(torch.ones(1, 3), torch.zeros(1, 3))  # 3 log(1/2)
    tensor([-2.0794])
    """
    dtype = torch.promote_types(x.dtype, logits.dtype)
    nats: Tensor = _BernoulliNats.apply(x.to(dtype), logits.to(dtype))  # type: ignore[no-untyped-call]
    return -nats.flatten(1).sum(1)


class _BernoulliNats(torch.autograd.Function):
    r"""Negative log-likelihood $\mathrm{softplus}(l) - x l$ of each pixel, with gradient $\sigma(l) - x$.

    It makes fewer passes over the pixels than `F.binary_cross_entropy_with_logits` and takes two thirds
    of its time.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, logits: Tensor) -> Tensor:
        ctx.save_for_backward(x, logits)
        return F.softplus(logits, threshold=SOFTPLUS_THRESHOLD).addcmul_(x, logits, value=-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, logits = ctx.saved_tensors
        needs_x, needs_logits = ctx.needs_input_grad
        return (
            -logits * gradient if needs_x else None,
            logits.sigmoid().sub_(x).mul_(gradient) if needs_logits else None,
        )


def gaussian_log_likelihood(x: Tensor, mean: Tensor, *, scale: Tensor) -> Tensor:
    r"""$\log \mathcal{N}(x; \mu, \sigma^2 I) = -\sum_i \Big(\frac{(x_i - \mu_i)^2}{2\sigma^2}
    + \log\sigma + \tfrac12\log 2\pi\Big)$.

    Reference: Auto-Encoding Variational Bayes, D. Kingma and M. Welling, 2014, appendix C.2.

    Arguments:
        x: (n, ...) values.
        mean: (n, ...) of the same shape.
        scale: $\sigma$, one for all pixels.

    Returns:
        (n,) nats.

    >>> gaussian_log_likelihood(torch.zeros(1, 2), torch.zeros(1, 2), scale=torch.ones(()))
    tensor([-1.8379])
    """
    squares = ((x - mean) / scale).square().flatten(1)
    return -0.5 * squares.sum(1) - squares.shape[1] * (scale.log() + 0.5 * math.log(2 * math.pi))


def kl_to_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$D_{KL}(\mathcal{N}(\mu, \sigma^2) \,\|\, \mathcal{N}(0, 1)) = \tfrac12(\mu^2 + \sigma^2 - 1
    - \log\sigma^2)$ of each latent dimension.

    Reference: Auto-Encoding Variational Bayes, D. Kingma and M. Welling, 2014, appendix B.

    Arguments:
        mean: (n, d).
        log_variance: (n, d).

    Returns:
        (n, d) nats.

    >>> kl_to_standard_normal(torch.ones(1, 2), torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """
    return 0.5 * (mean.square() + torch.expm1(log_variance) - log_variance)


def importance_weighted_bound(log_weights: Tensor) -> Tensor:
    r"""$\mathcal{L}_K = \log \frac1K \sum_{k=1}^K w_k \le \log p(x)$, $w_k = \frac{p(x, z_k)}{q(z_k|x)}$.

    For K = 1 it is the one-sample estimate of the ELBO. Its expectation increases with K.

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
    + \log 2\pi\big)$ of each element, in the shape of `z`.

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
