"""The importance-weighted bound against the closed form of a linear-Gaussian model."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics import importance_log_likelihood

D, LATENT, NOISE = 6, 3, 0.7


def linear_gaussian(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data x = W z + noise, W, and the exact log-likelihood of each x."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(D, LATENT))
    x = rng.normal(size=(n, LATENT)) @ W.T + NOISE * rng.normal(size=(n, D))
    covariance = W @ W.T + NOISE**2 * np.eye(D)
    quadratic = np.einsum("ni,ij,nj->n", x, np.linalg.inv(covariance), x)
    exact = -0.5 * (quadratic + np.linalg.slogdet(covariance)[1] + D * math.log(2 * math.pi))
    return x, W, exact


def log_weights(
    x: np.ndarray, W: np.ndarray, samples: int, *, seed: int, widen: float
) -> np.ndarray:
    """log p(x, z) - log q(z|x), with q the exact posterior made wider."""
    rng = np.random.default_rng(seed)
    precision = np.eye(LATENT) + W.T @ W / NOISE**2
    covariance = widen * np.linalg.inv(precision)
    root = np.linalg.cholesky(covariance)
    mean = x @ W @ np.linalg.inv(precision) / NOISE**2
    e = rng.normal(size=(samples, len(x), LATENT))
    z = mean + e @ root.T
    log_q = (
        -0.5 * (e**2).sum(-1) - np.log(np.diag(root)).sum() - 0.5 * LATENT * math.log(2 * math.pi)
    )
    log_prior = -0.5 * (z**2).sum(-1) - 0.5 * LATENT * math.log(2 * math.pi)
    residual = (x - z @ W.T) / NOISE
    log_p = -0.5 * (residual**2).sum(-1) - D * (math.log(NOISE) + 0.5 * math.log(2 * math.pi))
    return np.asarray(log_p + log_prior - log_q)


def test_the_exact_posterior_gives_the_exact_likelihood_with_one_sample() -> None:
    x, W, exact = linear_gaussian(20)
    bound = importance_log_likelihood(log_weights(x, W, 1, seed=1, widen=1.0))
    np.testing.assert_allclose(bound.details["per_image"], exact, rtol=1e-10)


def test_a_wide_posterior_agrees_within_three_standard_errors() -> None:
    """The error of log(mean w) is std(w) / (mean(w) sqrt(K)) to first order, image by image."""
    x, W, exact = linear_gaussian(50)
    weights = log_weights(x, W, 5000, seed=2, widen=2.0)
    bound = importance_log_likelihood(weights)
    relative = np.exp(weights - weights.max(axis=0))
    error = relative.std(axis=0) / relative.mean(axis=0) / math.sqrt(5000)
    gap = bound.value - exact.mean()
    assert abs(gap) < 3 * math.sqrt((error**2).sum()) / len(x)


def test_the_bound_rises_with_the_number_of_samples() -> None:
    x, W, exact = linear_gaussian(200)
    weights = log_weights(x, W, 1000, seed=3, widen=4.0)
    values = [importance_log_likelihood(weights[:k]).value for k in (1, 10, 100, 1000)]
    assert values == sorted(values)
    assert values[0] < exact.mean() - 0.1


def test_chunks_give_what_the_whole_gives() -> None:
    x, W, _ = linear_gaussian(30)
    weights = log_weights(x, W, 100, seed=4, widen=2.0)

    def chunks() -> Iterator[np.ndarray]:
        yield from np.array_split(weights, 7)

    whole, parts = importance_log_likelihood(weights), importance_log_likelihood(chunks())
    np.testing.assert_allclose(parts.details["per_image"], whole.details["per_image"], rtol=1e-12)
    assert parts.details["samples"] == 100


def test_tiny_weights_do_not_vanish() -> None:
    bound = importance_log_likelihood(np.full((10, 2), -5000.0))
    np.testing.assert_allclose(bound.details["per_image"], -5000.0)
    np.testing.assert_allclose(bound.details["effective_samples"], 10)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(3), np.zeros((0, 3)), np.array([[math.nan]]), np.array([[math.inf]]), iter(())],
    ids=["vector", "no samples", "nan", "infinity", "nothing"],
)
def test_bad_weights_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(UsageError, match="log_weights"):
        importance_log_likelihood(wrong)
