"""The maximum mean discrepancy: by hand, without bias, and with the power to tell apart."""

import numpy as np
import pytest
import torch

from disentwine.objectives.kernels import SCALES, inverse_multiquadratic
from disentwine.objectives.mmd import mmd


def test_it_is_what_loops_over_pairs_give() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(6, 3)) + 1

    def mixture(a: np.ndarray, b: np.ndarray) -> float:
        widths = [2 * 3 * s for s in SCALES]
        return sum(C / (C + ((a - b) ** 2).sum()) for C in widths)

    within_x = np.mean([mixture(x[i], x[j]) for i in range(4) for j in range(4) if i != j])
    within_y = np.mean([mixture(y[i], y[j]) for i in range(6) for j in range(6) if i != j])
    between = np.mean([mixture(a, b) for a in x for b in y])
    got = mmd(torch.tensor(x), torch.tensor(y))
    assert got.item() == pytest.approx(within_x + within_y - 2 * between, abs=1e-12)


def test_it_is_unbiased() -> None:
    """The mean over 1,000 pairs of samples of one distribution is within 4 standard errors of 0."""
    torch.manual_seed(0)
    values = torch.stack([mmd(*torch.randn(2, 16, 3).unbind()) for _ in range(1000)])
    error = values.std().item() / len(values) ** 0.5
    assert abs(values.mean().item()) < 4 * error
    # Counting each sample's pair with itself would add about k(x, x) - E k(x, y), twice over n.
    with_itself = 2 * (
        len(SCALES) - inverse_multiquadratic(*torch.randn(2, 500, 3).unbind()).mean()
    )
    assert with_itself / 16 > 20 * error


def test_it_tells_distributions_apart() -> None:
    """Each difference is more than 10 standard deviations of what equal distributions give."""
    torch.manual_seed(0)
    n, d = 200, 4
    equal = torch.stack([mmd(torch.randn(n, d), torch.randn(n, d)) for _ in range(20)])
    prior = torch.randn(n, d)
    correlated = torch.randn(n, 1).expand(n, d)
    for codes in (torch.randn(n, d) + 1, 2 * torch.randn(n, d), correlated):
        assert mmd(codes, prior) > 10 * equal.std()


def test_one_code_has_no_pair_but_a_finite_value() -> None:
    x = torch.zeros(1, 3, requires_grad=True)
    value = mmd(x, torch.ones(1, 3))
    value.backward()
    assert value.isfinite()
    assert x.grad is not None
    assert x.grad.isfinite().all()
