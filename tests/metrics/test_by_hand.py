"""A middling value of every metric, counted by hand: where only perfect ones are tested, a wrong scale
or weight goes unseen."""

import numpy as np
import pytest

from disentwine.metrics import (
    dci,
    explicitness,
    factor_vae,
    info_mec,
    irs,
    mig,
    mine,
    modularity,
    sap,
    z_diff,
)
from disentwine.metrics.disentanglement.dci import _concentration

A, B = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 20, dtype=float).T
FACTORS = np.stack([A, B], axis=1)
CODES = np.stack([A, A * B], axis=1)
"""The first code is the first factor; the second is "both", and knows as much of either."""

KNOWN = 0.75 * np.log2(4 / 3) + 0.25 * np.log2(4) - 0.5
"""Bits that "both" has of one factor, H(both) - H(both | a): .311 of 1."""

INFORMATION = np.array([[1, 0], [KNOWN, KNOWN]])

GRID = np.array(list(np.ndindex(6, 6, 6)), dtype=float)


def test_mig_of_a_code_that_knows_a_little_of_both() -> None:
    """Gaps of 1 - .311 and .311 - 0."""
    score = mig(CODES, FACTORS)
    assert score.details["matrix"] == pytest.approx(INFORMATION, abs=1e-12)
    assert score.details["gaps"] == pytest.approx([1 - KNOWN, KNOWN])
    assert score.value == pytest.approx(0.5)


def test_mic_of_a_code_that_knows_a_little_of_both() -> None:
    """Of two values a grid is 2 by 2, and MIC is the information in bits."""
    score = mine(CODES, FACTORS)[0]
    assert score.details["matrix"] == pytest.approx(INFORMATION, abs=1e-12)
    assert score.value == pytest.approx((1 + KNOWN) / 2)


def test_sap_of_a_code_that_knows_a_little_of_both() -> None:
    """Told from "both", a is right always where it is 0 and half the time where it is 1: .75. The
    squared correlation is (1/8)^2 / (3/16 1/4) = 1/3."""
    score = sap(CODES, FACTORS)
    assert score.details["matrix"] == pytest.approx(np.array([[1, 0.5], [0.75, 0.75]]))
    assert score.value == pytest.approx(0.25)
    assert score.details["as_continuous"] == pytest.approx((2 / 3 + 1 / 3) / 2)


def test_modularity_of_a_code_that_knows_two_factors_of_three() -> None:
    """1 for the first code; for the second one other of K - 1 = 2 counts fully: 1 - 1/2."""
    a, b, c = np.array(list(np.ndindex(2, 2, 2)) * 10, dtype=float).T
    score = modularity(np.stack([a, a * b], axis=1), np.stack([a, b, c], axis=1))
    assert score.details["matrix"] / np.log(2) == pytest.approx(
        np.hstack([INFORMATION, np.zeros((2, 1))]), abs=1e-12
    )
    assert score.value == pytest.approx(0.75)


def test_explicitness_of_a_code_that_tells_one_value_of_three() -> None:
    """The area is 1 for that value and for each other (1/2 + 1) / 2: twice the mean less 1 is 2/3."""
    v = np.repeat([0.0, 1.0, 2.0], 400)[:, None]
    found = [explicitness(v == 2, v, seed=seed, floor=False).value for seed in range(4)]
    assert np.mean(found) == pytest.approx(2 / 3, abs=0.01)


def test_info_mec_of_a_code_that_knows_a_little_of_both() -> None:
    """The best share of rows is 1 and 1/2, of columns 1 / 1.311 and 1; an even share, 1/2, counts 0."""
    found = info_mec(CODES, FACTORS, discrete_codes=True).details
    assert found["matrix"] == pytest.approx(INFORMATION, abs=1e-12)
    assert found["info_m"] == pytest.approx(2 * 0.75 - 1)
    assert found["info_c"] == pytest.approx(2 * (1 / (1 + KNOWN) + 1) / 2 - 1)


def test_irs_weighs_codes_by_how_far_they_move() -> None:
    """Twice as far moves the one that stays while b changes; the other, "a is b", never does."""
    codes = np.stack([4 * A, 2 * (A == B)], axis=1)
    score = irs(codes, FACTORS)
    assert score.details["matrix"] == pytest.approx(np.array([[1, 0], [0, 0]]), abs=1e-12)
    assert score.value == pytest.approx(2 / 3)


def test_dci_weighs_codes_by_how_much_they_matter() -> None:
    """Row and column entropies are ln 2 / ln 3 of a code for two factors of three, and 0."""
    a, b, c = np.array(list(np.ndindex(2, 2, 2)) * 150, dtype=float).T
    found = dci(np.stack([2 * a + b, c], axis=1), np.stack([a, b, c], axis=1), floor=False)
    assert found.details["matrix"] == pytest.approx(np.array([[1, 1, 0], [0, 0, 1]]), abs=1e-6)
    assert found.value == pytest.approx(2 / 3 * (1 - np.log(2) / np.log(3)) + 1 / 3, abs=1e-6)
    assert found.details["completeness"] == pytest.approx(1, abs=1e-6)
    matrix = np.array([[0.6, 0.0], [0.2, 0.2]])
    assert _concentration(matrix) == pytest.approx(0.6)
    assert _concentration(matrix.T) == pytest.approx(0.8 * (0.5 - KNOWN) + 0.2)


def test_factor_vae_of_codes_that_know_two_factors_of_three() -> None:
    """A set that shares the third is taken for one of the others."""
    score = factor_vae(GRID[:, :2], GRID, train=3000, test=3000, floor=False)
    assert score.value == pytest.approx(2 / 3, abs=0.03)


def test_z_diff_of_a_code_that_knows_one_factor_of_three() -> None:
    """The first is told, and of the other two one is guessed: 1/3 + 2/3 1/2."""
    score = z_diff(GRID[:, :1], GRID, train=3000, test=3000, floor=False)
    assert score.value == pytest.approx(2 / 3, abs=0.03)


def test_z_diff_of_the_paper_does_not_see_small_codes() -> None:
    """A support vector machine with C = .01 pays more for their weights than for its errors."""
    codes = GRID * [1, 0.05, 0.05]
    common, paper = (
        z_diff(codes, GRID, protocol=protocol, train=1000, test=1000, floor=False)
        for protocol in ("common", "paper")
    )
    assert common.value > 0.99
    assert paper.value < 0.8
    assert (common.details["protocol"], paper.details["protocol"]) == ("common", "paper")
