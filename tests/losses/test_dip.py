"""DIP-VAE's moments against NumPy's, and against sampled latents."""

import numpy as np
import pytest
import torch
from torch import Tensor

from disentwine.losses.dip import (
    covariance_of_latents,
    covariance_of_means,
    diagonal_penalty,
    off_diagonal_penalty,
    third_moment_penalty,
    third_moments,
)


def posteriors(
    n: int = 37, d: int = 4, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Means that are correlated and skewed, and variances that go with them."""
    torch.manual_seed(0)
    mean = torch.randn(n, d, dtype=dtype) @ torch.randn(d, d, dtype=dtype) + 3
    mean = mean + 0.2 * mean.square()
    return mean, 0.3 * mean - 1 + 0.1 * torch.randn(n, d, dtype=dtype)


def draw(mean: Tensor, log_variance: Tensor, *, each: int) -> np.ndarray:
    """`each` codes from every posterior: a sample of q(z)."""
    rng = np.random.default_rng(0)
    scale = np.exp(0.5 * log_variance.numpy())
    codes = mean.numpy() + scale * rng.normal(size=(each, *mean.shape))
    return codes.reshape(-1, mean.shape[1])


def test_covariance_of_means_is_that_of_numpy() -> None:
    mean, _ = posteriors()
    expected = np.cov(mean.double().numpy(), rowvar=False, bias=True)
    np.testing.assert_allclose(covariance_of_means(mean.double()), expected, rtol=0, atol=1e-12)
    single = covariance_of_means(mean).numpy()
    assert np.abs(single - expected).max() < 1e-6 * np.abs(expected).max()


def test_covariance_of_codes_is_that_of_numpy_with_each_images_variances_on_the_diagonal() -> None:
    mean, log_variance = posteriors(dtype=torch.float64)
    n, d = mean.shape
    mu, variance = mean.numpy(), np.exp(log_variance.numpy())
    expected = np.zeros((d, d))
    for k in range(n):
        centred = mu[k] - mu.mean(axis=0)
        for i in range(d):
            expected[i, i] += variance[k, i] / n
            for j in range(d):
                expected[i, j] += centred[i] * centred[j] / n
    got = covariance_of_latents(mean, log_variance)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_covariance_of_codes_is_that_of_codes_that_are_drawn() -> None:
    """Within 5 standard errors of each entry, 74,000 codes."""
    mean, log_variance = posteriors(dtype=torch.float64)
    codes = draw(mean, log_variance, each=2000)
    centred = codes - codes.mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / len(codes) ** 0.5
    got = covariance_of_latents(mean, log_variance).numpy()
    assert (np.abs(got - products.mean(axis=0)) < 5 * error).all()


def test_penalties_are_those_of_equations_6_and_7() -> None:
    C = np.array([[2.0, 0.5, -1.0], [0.5, 1.0, 0.25], [-1.0, 0.25, 0.0]])
    off_diagonal = sum(C[i, j] ** 2 for i in range(3) for j in range(3) if i != j)
    diagonal = sum((C[i, i] - 1) ** 2 for i in range(3))
    assert off_diagonal_penalty(torch.tensor(C)).item() == pytest.approx(off_diagonal, abs=1e-12)
    assert diagonal_penalty(torch.tensor(C)).item() == pytest.approx(diagonal, abs=1e-12)
    assert diagonal_penalty(torch.eye(4)) == off_diagonal_penalty(torch.eye(4)) == 0


def test_third_moments_are_those_of_codes_that_are_drawn() -> None:
    """Within 5 standard errors of each; without the variances they are not."""
    mean, log_variance = posteriors(dtype=torch.float64)
    codes = draw(mean, log_variance, each=2000)
    centred = codes - codes.mean(axis=0)
    error = (centred**3).std(axis=0) / len(codes) ** 0.5
    sampled = (centred**3).mean(axis=0)
    got = third_moments(mean, log_variance).numpy()
    assert (np.abs(got - sampled) < 5 * error).all()
    of_means_only = third_moments(mean, torch.full_like(log_variance, -100)).numpy()
    assert (np.abs(of_means_only - sampled) > 5 * error).any()


def test_third_moments_of_a_symmetric_distribution_vanish() -> None:
    mean, _ = posteriors(dtype=torch.float64)
    both = torch.cat([mean, -mean])
    assert third_moment_penalty(both, torch.zeros_like(both)).item() == pytest.approx(0, abs=1e-18)


def test_one_image_has_no_covariance_but_a_finite_gradient() -> None:
    mean = torch.ones(1, 3, requires_grad=True)
    total = off_diagonal_penalty(covariance_of_means(mean)) + third_moment_penalty(mean, mean)
    total.backward()
    assert total == 0
    assert mean.grad is not None
    assert mean.grad.isfinite().all()


def test_moments_have_all_their_digits_in_half_precision() -> None:
    mean, log_variance = posteriors()
    with torch.autocast("cpu", torch.bfloat16):
        covariance = covariance_of_latents(mean, log_variance)
    assert torch.equal(covariance, covariance_of_latents(mean, log_variance))
