"""Decomposition of the KL divergence: index-code information, total correlation, dimension-wise KL."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from disentwine.losses.elbo import gaussian_log_density

DensityEstimator = Literal["stratified", "weighted"]


class Decomposition(NamedTuple):
    r"""The three parts of the KL divergence, (n,) nats each; they sum to $\log q(z|x) - \log p(z)$.

    Arguments:
        index_code_mi: $I_q(z; n)$, mutual information of latents and image index.
        total_correlation: $D_{KL}(q(z) \,\|\, \prod_j q(z_j))$.
        dimension_wise_kl: $\sum_j D_{KL}(q(z_j) \,\|\, p(z_j))$.
    """

    index_code_mi: Tensor
    total_correlation: Tensor
    dimension_wise_kl: Tensor


def decompose_kl(
    z: Tensor,
    mean: Tensor,
    log_variance: Tensor,
    *,
    dataset_size: int,
    estimator: DensityEstimator = "stratified",
) -> Decomposition:
    r"""Decompose $\mathbb{E}_{p(n)} D_{KL}(q(z|n) \,\|\, p(z)) = I_q(z; n)
    + D_{KL}(q(z) \,\|\, \prod_j q(z_j)) + \sum_j D_{KL}(q(z_j) \,\|\, p(z_j))$.

    Reference: Isolating Sources of Disentanglement in Variational Autoencoders, R. Chen, X. Li,
    R. Grosse and D. Duvenaud, 2018, eq. 2.

    Arguments:
        z: a sample from each image's posterior, (n, d).
        mean: $\mu$ of the posteriors, (n, d).
        log_variance: $\log \sigma^2$ of the posteriors, (n, d).
        dataset_size: N, number of images in the training set.
        estimator: of $\log q(z)$; see `log_batch_weights`.

    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <torch._C.Generator object at ...>
    >>> same = torch.zeros(500, 2)  # every posterior is the prior
    >>> parts = decompose_kl(torch.randn(500, 2), same, same, dataset_size=500)
    >>> [round(part.mean().abs().item(), 5) for part in parts]
    [0.0, 0.0, 0.0]
    """
    log_weights = log_batch_weights(
        len(z), dataset_size=dataset_size, estimator=estimator, like=mean
    )
    # [i, j, k]: sample i under the posterior of image j, in dimension k.
    log_densities = gaussian_log_density(z[:, None], mean, log_variance)
    log_q_given_n = gaussian_log_density(z, mean, log_variance).sum(1)
    log_q = torch.logsumexp(log_weights + log_densities.sum(2), dim=1)
    log_product = torch.logsumexp(log_weights[..., None] + log_densities, dim=1).sum(1)
    log_p = gaussian_log_density(z, torch.zeros_like(z), torch.zeros_like(z)).sum(1)
    return Decomposition(log_q_given_n - log_q, log_q - log_product, log_product - log_p)


def log_batch_weights(
    n: int, *, dataset_size: int, estimator: DensityEstimator, like: Tensor
) -> Tensor:
    r"""Log-weights $\log w_{ij}$ such that $q(z_i) \approx \sum_j w_{ij}\, q(z_i|x_j)$.

    "stratified" is unbiased: 1/N for the sample's own image; of the M = n - 1 others, one has
    (N - M) / NM and the rest 1/M each. "weighted" has 1/Nn everywhere, which underestimates $\log q$ by
    log n (if latents identify images) to log N (if they do not); its gradient is still useful.

    Reference: Chen et al., 2018, appendix C.2 and eq. 3. Public ports fill the stratified matrix with
    strides of n, but its diagonals are n + 1 apart.

    Arguments:
        n: images in the batch.
        dataset_size: N, number of images in the training set.
        estimator: "stratified" or "weighted".
        like: tensor that determines dtype and device.

    Returns:
        (n, n).

    >>> weights = log_batch_weights(
    ...     3, dataset_size=10, estimator="stratified", like=torch.ones(())
    ... ).exp()
    >>> weights
    tensor([[0.1000, 0.4000, 0.5000],
            [0.5000, 0.1000, 0.4000],
            [0.4000, 0.5000, 0.1000]])
    """
    N, M = max(dataset_size, n), n - 1  # the batch may be larger than the data set
    if estimator == "weighted":
        return like.new_full((n, n), -math.log(N * n))
    if M == 0:
        return like.new_zeros(1, 1)
    weights = like.new_full((n, n), 1 / M)
    i = torch.arange(n, device=like.device)
    weights[i, (i + 1) % n] = (N - M) / (N * M)
    weights[i, i] = 1 / N
    return weights.log()
