r"""Penalties on the moments of the inferred prior $q(z) = \mathbb{E}_{p(x)} q(z|x)$, as DIP-VAE has them.

Moments are those of the batch, its images weighing 1/n each.

Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
A. Kumar, P. Sattigeri and A. Balakrishnan, 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor


def covariance_of_means(mean: Tensor) -> Tensor:
    r"""$\mathrm{Cov}_{p(x)}[\mu(x)]$, which DIP-VAE-I pulls towards the identity.

    Reference: Kumar et al., 2018, eq. 6.

    Arguments:
        mean: $\mu$, (n, d).

    Returns:
        (d, d).

    >>> covariance_of_means(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    centred = mean - mean.mean(0)
    with torch.autocast(
        mean.device.type, enabled=False
    ):  # which would halve the digits of a product
        return centred.T @ centred / len(mean)


def covariance_of_codes(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$\mathrm{Cov}_{q(z)}[z] = \mathbb{E}_{p(x)}[\Sigma(x)] + \mathrm{Cov}_{p(x)}[\mu(x)]$ with
    $\Sigma = \mathrm{diag}(\sigma^2)$, which DIP-VAE-II pulls towards the identity.

    Reference: Kumar et al., 2018, eq. 5 and 7.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).

    Returns:
        (d, d).

    >>> covariance_of_codes(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.zeros(2, 2))
    tensor([[2., 2.],
            [2., 5.]])
    """
    return torch.diag(log_variance.exp().mean(0)) + covariance_of_means(mean)


def off_diagonal_penalty(covariance: Tensor) -> Tensor:
    r"""$\sum_{i \neq j} C_{ij}^2$, weighed by $\lambda_{od}$.

    Reference: Kumar et al., 2018, eq. 6 and 7.

    Arguments:
        covariance: C, (d, d).

    Returns:
        One number.

    >>> off_diagonal_penalty(torch.tensor([[7.0, 1.0], [1.0, 7.0]]))
    tensor(2.)
    """
    return (covariance - torch.diag(covariance.diagonal())).square().sum()


def diagonal_penalty(covariance: Tensor) -> Tensor:
    r"""$\sum_i (C_{ii} - 1)^2$, weighed by $\lambda_d$.

    Reference: Kumar et al., 2018, eq. 6 and 7.

    Arguments:
        covariance: C, (d, d).

    Returns:
        One number.

    >>> diagonal_penalty(torch.tensor([[3.0, 9.0], [9.0, 1.0]]))
    tensor(4.)
    """
    return (covariance.diagonal() - 1).square().sum()


def third_moments(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$m_i = \mathbb{E}_{q(z)}[\bar z_i^3]$ with $\bar z = z - \mathbb{E}_{q(z)}[z]$, for each dimension.

    Given x, a dimension is Gaussian, so with $\bar\mu = \mu - \mathbb{E}[\mu]$ this is
    $\mathbb{E}[\bar\mu_i^3] + 3\,\mathbb{E}[\sigma_i^2 \bar\mu_i]$: no sampling.

    Reference: Kumar et al., 2018, the end of section 2.2.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).

    Returns:
        (d,).

    >>> third_moments(torch.tensor([[2.0], [-1.0], [-1.0]]), torch.zeros(3, 1))  # (8 - 1 - 1) / 3
    tensor([2.])
    """
    centred = mean - mean.mean(0)
    return (centred**3 + 3 * log_variance.exp() * centred).mean(0)


def third_moment_penalty(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""$\sum_i m_i^2$, 0 for the prior, weighed by $\lambda_3$.

    The paper penalises "the l2-norm of third order central moments"; as for its covariances, this is
    the square. Those of several dimensions together are left out: of the thousand moments of ten
    dimensions a batch of 400 tells little but noise, which $\lambda_3 = 200$ would make hundreds of nats.

    Reference: Kumar et al., 2018, the end of section 2.2 and section 4.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).

    Returns:
        One number.

    >>> third_moment_penalty(torch.tensor([[2.0], [-1.0], [-1.0]]), torch.zeros(3, 1))
    tensor(4.)
    """
    return third_moments(mean, log_variance).square().sum()
