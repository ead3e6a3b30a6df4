r"""Moment penalties of DIP-VAE on the inferred prior $q(z) = \mathbb{E}_{p(x)} q(z|x)$.

Moments are estimated from the batch.

Reference: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations,
A. Kumar, P. Sattigeri and A. Balakrishnan, 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor


def covariance_of_means(mean: Tensor) -> Tensor:
    r"""Covariance of the posterior means, $\mathrm{Cov}_{p(x)}[\mu(x)]$, for DIP-VAE-I.

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
    # The product would be inaccurate in half precision.
    with torch.autocast(mean.device.type, enabled=False):
        return centred.T @ centred / len(mean)


def covariance_of_latents(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""Covariance of the latents, $\mathrm{Cov}_{q(z)}[z] = \mathbb{E}_{p(x)}[\Sigma(x)]
    + \mathrm{Cov}_{p(x)}[\mu(x)]$ with $\Sigma = \mathrm{diag}(\sigma^2)$, for DIP-VAE-II.

    Reference: Kumar et al., 2018, eq. 5 and 7.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).

    Returns:
        (d, d).

    >>> covariance_of_latents(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.zeros(2, 2))
    tensor([[2., 2.],
            [2., 5.]])
    """
    return torch.diag(log_variance.exp().mean(0)) + covariance_of_means(mean)


def off_diagonal_penalty(covariance: Tensor) -> Tensor:
    r"""Off-diagonal penalty $\sum_{i \neq j} C_{ij}^2$, with weight $\lambda_{od}$.

    Reference: Kumar et al., 2018, eq. 6 and 7.

    Arguments:
        covariance: C, (d, d).

    Returns:
        Scalar.

    >>> off_diagonal_penalty(torch.tensor([[7.0, 1.0], [1.0, 7.0]]))
    tensor(2.)
    """
    return (covariance - torch.diag(covariance.diagonal())).square().sum()


def diagonal_penalty(covariance: Tensor) -> Tensor:
    r"""Diagonal penalty $\sum_i (C_{ii} - 1)^2$, with weight $\lambda_d$.

    Reference: Kumar et al., 2018, eq. 6 and 7.

    Arguments:
        covariance: C, (d, d).

    Returns:
        Scalar.

    >>> diagonal_penalty(torch.tensor([[3.0, 9.0], [9.0, 1.0]]))
    tensor(4.)
    """
    return (covariance.diagonal() - 1).square().sum()


def third_moments(mean: Tensor, log_variance: Tensor) -> Tensor:
    r"""Third central moments $m_i = \mathbb{E}_{q(z)}[\bar z_i^3]$, $\bar z = z - \mathbb{E}_{q(z)}[z]$.

    Given x, each latent is Gaussian, so with $\bar\mu = \mu - \mathbb{E}[\mu]$ the moment has the closed
    form $\mathbb{E}[\bar\mu_i^3] + 3\,\mathbb{E}[\sigma_i^2 \bar\mu_i]$.

    Reference: Kumar et al., 2018, end of section 2.2.

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
    r"""Penalty $\sum_i m_i^2$ on the third moments, with weight $\lambda_3$; zero for the prior.

    The paper penalises "the l2-norm of third order central moments"; as for its covariances, this is
    the square. Mixed moments are left out: a batch of 400 estimates the thousand moments of ten
    dimensions with so much noise that $\lambda_3 = 200$ would add hundreds of nats.

    Reference: Kumar et al., 2018, end of section 2.2 and section 4.

    Arguments:
        mean: $\mu$, (n, d).
        log_variance: $\log \sigma^2$, (n, d).

    Returns:
        Scalar.

    >>> third_moment_penalty(torch.tensor([[2.0], [-1.0], [-1.0]]), torch.zeros(3, 1))
    tensor(4.)
    """
    return third_moments(mean, log_variance).square().sum()
