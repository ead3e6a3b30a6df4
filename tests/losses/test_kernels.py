"""The independence criterion: by hand, and its test against independent and dependent pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import binom, kstest
from torch import Tensor

from disentwine.errors import UsageError
from disentwine.losses.kernels import SCALES, hsic, independence_test, inverse_multiquadratic, mmd

REPEATS = 400


def by_loops(x: np.ndarray, y: np.ndarray) -> float:
    """The sums of the definition, one pair, triple and quadruple after the other."""
    n = len(x)

    def kernel(a: np.ndarray) -> list[list[float]]:
        d = a.shape[1]
        return [[math.exp(-((p - q) ** 2).sum() / (2 * d)) for q in a] for p in a]

    k, other, every = kernel(x), kernel(y), range(n)
    pairs = sum(k[i][j] * other[i][j] for i in every for j in every)
    triples = sum(k[i][j] * other[i][q] for i in every for j in every for q in every)
    apart = sum(k[i][j] for i in every for j in every)
    apart *= sum(other[q][r] for q in every for r in every)
    return pairs / n**2 + apart / n**4 - 2 * triples / n**3


def test_it_is_what_loops_over_the_definition_give() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 3))
    for y in (rng.normal(size=(12, 2)), x[:, :2] ** 2):
        got = hsic(torch.tensor(x), torch.tensor(y)).item()
        assert got == pytest.approx(by_loops(x, y), abs=1e-10)


def test_it_is_symmetric_and_never_negative() -> None:
    torch.manual_seed(0)
    for n in (1, 2, 20):
        x, y = torch.randn(n, 3, dtype=torch.float64), torch.randn(n, 2, dtype=torch.float64)
        torch.testing.assert_close(hsic(x, y), hsic(y, x))
        assert hsic(x, y) >= -1e-15
    assert hsic(x[:1], y[:1]) == 0


def test_the_level_is_nominal_on_independent_pairs() -> None:
    """Of 400 data sets the rejections at 5 % lie within the binomial bounds of one in a million on
    either side, and p-values are spread evenly (Kolmogorov-Smirnov, over their grid of 1/20)."""
    torch.manual_seed(0)
    p = [
        independence_test(torch.randn(30, 2), torch.rand(30, 1), permutations=19, seed=i).p_value
        for i in range(REPEATS)
    ]
    rejected = sum(value <= 0.05 for value in p)
    low, high = binom.ppf([1e-6, 1 - 1e-6], REPEATS, 0.05)
    assert low <= rejected <= high
    spread = np.random.default_rng(0).uniform(size=REPEATS) / 20
    assert kstest(np.array(p) - spread, "uniform").pvalue > 1e-6


@pytest.mark.parametrize(
    "dependent",
    [lambda x: x, lambda x: x**2, lambda x: torch.sin(2 * x), lambda x: x * torch.randn(len(x), 1)],
    ids=["same", "square", "wave", "spread"],
)
def test_dependent_pairs_are_told(dependent: object) -> None:
    """Also where no correlation shows it, and where only the spread depends."""
    torch.manual_seed(0)
    x = torch.randn(150, 1)
    assert callable(dependent)
    y: Tensor = dependent(x)
    found = independence_test(x, y, permutations=99)
    assert found.p_value == 0.01
    assert found.statistic > 2 * found.floor


def test_units_order_and_seeds_do_not_matter_to_the_statistic() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(40, 2), torch.randn(40, 2)
    found = independence_test(x, y)
    other = independence_test(1e6 * x.flip(0) - 3, y.flip(0) / 1e6, seed=1)
    assert other.statistic == pytest.approx(found.statistic, rel=1e-5)
    assert independence_test(x, y) == found


@pytest.mark.parametrize("n", [20, 100, 200])
def test_a_constant_says_nothing_of_anything(n: int) -> None:
    constant, other = torch.ones(n, 2), torch.randn(n, 1)
    for pair in ((constant, other), (other, constant)):
        found = independence_test(*pair)
        assert found.p_value == 1
        assert found.statistic == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize(("x", "y"), [((5, 2), (4, 2)), ((5,), (5, 2)), ((1, 2), (1, 2))])
def test_what_is_no_table_of_pairs_is_refused(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="two or more rows"):
        independence_test(torch.zeros(x), torch.zeros(y))
    with pytest.raises(UsageError, match="permutations"):
        independence_test(torch.zeros(5, 2), torch.zeros(5, 2), permutations=0)


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
