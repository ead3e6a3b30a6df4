"""The parts of the divergence against closed forms for Gaussians and exact sums over all batches."""

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.losses.total_correlation import decompose_kl, log_batch_weights

VARIANCE = 0.4


def correlated(n: int, correlation: float, d: int = 2) -> tuple[Tensor, Tensor, Tensor, np.ndarray]:
    """Codes, means and log-variances of n posteriors, and the covariance that their mixture has."""
    rng = np.random.default_rng(0)
    target = np.full((d, d), correlation) + (1 - correlation) * np.eye(d)
    white = rng.normal(size=(n, d))
    white -= white.mean(axis=0)
    # Exactly the covariance of the closed form, so that only the sampling of z is left to chance.
    white = white @ np.linalg.inv(np.linalg.cholesky(np.cov(white, rowvar=False, bias=True))).T
    mean = white @ np.linalg.cholesky(target - VARIANCE * np.eye(d)).T
    z = mean + VARIANCE**0.5 * rng.normal(size=(n, d))
    log_variance = torch.full((n, d), np.log(VARIANCE), dtype=torch.float64)
    return torch.tensor(z), torch.tensor(mean), log_variance, target


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.55])
def test_the_parts_agree_with_the_closed_forms_for_gaussians(correlation: float) -> None:
    """Within 4 standard errors, and 5/n for a mixture that is only nearly Gaussian.

    With q(z) = N(0, C): total correlation is (sum log C_ii - log det C) / 2, the information
    (log det C - log det S) / 2 for posteriors N(m, S), and the rest is 0 as C_ii = 1.
    """
    n = 1500
    z, mean, log_variance, C = correlated(n, correlation)
    parts = decompose_kl(z, mean, log_variance, dataset_size=n)
    log_det = np.linalg.slogdet(C)[1]
    information = (log_det - len(C) * np.log(VARIANCE)) / 2
    for part, exact in zip(parts, (information, -log_det / 2, 0.0), strict=True):
        error = part.std().item() / n**0.5
        assert abs(part.mean().item() - exact) < 4 * error + 5 / n


def test_the_parts_sum_to_the_divergence() -> None:
    z, mean, log_variance, _ = correlated(64, 0.5)
    for estimator in ("stratified", "weighted"):
        parts = decompose_kl(z, mean, log_variance, dataset_size=700, estimator=estimator)
        log_ratio = 0.5 * (z.square() - (z - mean).square() / VARIANCE - log_variance).sum(1)
        torch.testing.assert_close(sum(parts), log_ratio)
    total = sum(decompose_kl(*correlated(1000, 0.5)[:3], dataset_size=1000))
    mean, log_variance = correlated(1000, 0.5)[1:3]
    kl = kl_to_standard_normal(mean, log_variance).sum(1)
    error = (total - kl).std().item() / 1000**0.5
    assert abs((total - kl).mean().item()) < 4 * error


def test_the_stratified_weights_have_the_aggregate_posterior_for_their_mean() -> None:
    """Exactly: over all ordered batches of 3 out of 6 images that begin with the sample's own."""
    z, mean, log_variance, _ = correlated(6, 0.5)
    densities = torch.exp(
        -0.5 * ((z[:, None] - mean).square() / VARIANCE + log_variance + np.log(2 * np.pi)).sum(2)
    )
    weights = log_batch_weights(3, dataset_size=6, estimator="stratified", like=mean).exp()
    torch.testing.assert_close(weights.sum(1), torch.ones(3, dtype=torch.float64))
    for i in range(6):
        for row in range(3):
            estimates = [
                (weights[row] * densities[i, list(batch)]).sum()
                for batch in permutations(range(6), 3)
                if batch[row] == i
            ]
            torch.testing.assert_close(torch.stack(estimates).mean(), densities[i].mean())


def test_the_weighted_estimate_is_too_low_by_the_logarithm_of_the_data() -> None:
    """By log N where all posteriors are the same, by log n where none overlap."""
    n, N = 8, 1000
    torch.manual_seed(0)
    z, same = torch.randn(n, 1, dtype=torch.float64), torch.zeros(n, 1, dtype=torch.float64)
    parts = decompose_kl(z, same, same, dataset_size=N, estimator="weighted")
    torch.testing.assert_close(parts.index_code_mi, torch.full((n,), np.log(N)).double())
    apart = 1e3 * torch.arange(n, dtype=torch.float64)[:, None]
    parts = decompose_kl(apart, apart, same, dataset_size=N, estimator="weighted")
    torch.testing.assert_close(parts.index_code_mi, torch.full((n,), np.log(N * n)).double())


@pytest.mark.parametrize("n", [1, 2, 9])
def test_batches_of_any_size_are_finite(n: int) -> None:
    z = torch.linspace(-1, 1, n)[:, None].expand(n, 2)
    for N in (1, n, 10**6):
        for part in decompose_kl(z, z, torch.zeros_like(z), dataset_size=N):
            assert part.isfinite().all()
