"""Known values of single metrics."""

from itertools import combinations_with_replacement, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, mutual_info_score

from disentwine.causal import Graph
from disentwine.errors import UsageError
from disentwine.metrics import (
    action_accuracy,
    attribute_accuracy,
    dci,
    edge_scores,
    factor_accuracy,
    info_mec,
    irs,
    mig,
    mine,
    sap,
    shd,
    z_diff,
)
from disentwine.metrics._inputs import entropy, mutual_information
from disentwine.metrics.attributes import _hinge_bias
from disentwine.metrics.disentanglement.gaps import threshold_accuracy
from disentwine.metrics.disentanglement.info_mec import explained

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_mutual_information_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(0, 7, 300), rng.integers(0, 4, 300)
        b[a > 4] = 0
        assert mutual_information(a, b) == pytest.approx(mutual_info_score(a, b), abs=1e-12)
        assert mutual_information(a, a) == pytest.approx(entropy(a), abs=1e-12)


def test_thresholds_are_the_best_there_are() -> None:
    """Against every pair of thresholds and every assignment of three classes, on small samples."""
    rng = np.random.default_rng(1)
    classes = np.array(list(product(range(3), repeat=3)))  # of the three ranges
    for _ in range(20):
        code, y = rng.normal(size=12), rng.integers(0, 3, 12)
        y[:3] = [0, 1, 2]
        ordered = np.sort(code)
        cuts = [-np.inf, *((ordered[1:] + ordered[:-1]) / 2), np.inf]
        pairs = combinations_with_replacement(cuts, 2)
        ranges = np.array([np.searchsorted(pair, code) for pair in pairs])
        guesses = classes[:, ranges].reshape(-1, 12)
        recalls = [(guesses[:, y == c] == c).mean(axis=1) for c in range(3)]
        accuracies = np.mean(recalls, axis=0)
        best = accuracies.max()
        checked = balanced_accuracy_score(y, guesses[accuracies.argmax()])
        assert best == pytest.approx(checked, abs=1e-12)
        assert threshold_accuracy(code, y) == pytest.approx(best, abs=1e-12)


def test_one_threshold_for_two_classes_by_hand() -> None:
    code = np.array([1.0, 2.0, 3.0, 4.0])
    assert threshold_accuracy(code, np.array([0, 1, 0, 1])) == pytest.approx(0.75)


def test_sap_of_a_noisy_copy_is_the_squared_correlation() -> None:
    rng = np.random.default_rng(2)
    v = rng.normal(size=(20_000, 1))
    z = np.hstack([v + rng.normal(size=v.shape), rng.normal(size=v.shape)])
    assert sap(z, v).value == pytest.approx(0.5, abs=0.02)


def test_sap_of_a_perfect_category_is_one_less_chance() -> None:
    rng = np.random.default_rng(3)
    v = rng.integers(0, 4, (20_000, 1)).astype(float)
    z = np.hstack([v, rng.normal(size=v.shape)])
    score = sap(z, v, kinds=["categorical"])
    assert score.details["matrix"][0, 0] == 1
    assert score.value == pytest.approx(0.75, abs=0.03)


def test_sap_does_not_count_units_that_are_not_used() -> None:
    rng = np.random.default_rng(5)
    v = np.hstack([rng.normal(size=(2000, 1)), rng.integers(0, 2, (2000, 1))])
    unused = 0.01 * v
    used_and_unused = np.hstack([v, unused])
    kinds = ["continuous", "binary"]
    assert sap(used_and_unused, v, kinds=kinds).value == pytest.approx(0, abs=1e-9)
    of_used = sap(np.hstack([v, 0 * unused]), v, kinds=kinds)
    found = sap(used_and_unused, v, kinds=kinds, inactive=0.01).value
    assert found == pytest.approx(of_used.value, abs=1e-9)
    assert found > 0.7


def test_mig_of_two_equal_codes_is_nothing() -> None:
    v = np.random.default_rng(4).integers(0, 5, (2000, 2)).astype(float)
    assert mig(np.hstack([v, v]), v).value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("metric", [mig, mine])
def test_what_chance_gives_a_cell_is_no_gap_and_no_best(metric: Any) -> None:
    rng = np.random.default_rng(9)
    z, v = rng.normal(size=(400, 8)), rng.integers(0, 6, (400, 3)).astype(float)
    answer = metric(z, v)
    score = answer if metric is mig else answer[0]
    cell = score.details["matrix_noise_floor"]
    assert cell == pytest.approx(score.details["matrix"].mean(), rel=0.05)
    assert cell != pytest.approx(score.noise_floor, rel=0.1)


def test_completeness_and_disentanglement_tell_apart_what_each_means() -> None:
    """Two codes for one factor: disentangled but not complete; one code for two: the reverse."""
    rng = np.random.default_rng(5)
    v = rng.integers(0, 4, (3000, 2)).astype(float)
    doubled = np.hstack([v + 0.6 * rng.normal(size=v.shape), v + 0.6 * rng.normal(size=v.shape)])
    found = dci(doubled, v, floor=False)
    assert found.value > found.details["completeness"] + 0.2
    merged = dci((v[:, :1] * 4 + v[:, 1:]), v, floor=False)
    assert merged.details["completeness"] > merged.value + 0.5


def test_info_mec_counts_discrete_codes_exactly() -> None:
    """A code of names, not numbers, is as good as the factor itself."""
    rng = np.random.default_rng(6)
    v = rng.integers(0, 6, (4000, 2)).astype(float)
    names = np.stack([rng.permutation(6)[v[:, i].astype(int)] for i in range(2)], axis=1)
    score = info_mec(names, v, discrete_codes=True, kinds=["categorical", "categorical"])
    assert score.details["info_m"] > 0.99
    assert score.details["info_e"] > 0.99
    assert score.details["info_c"] > 0.99
    assert score.details["floors"]["info_e"] < 0.02


def test_info_mec_leaves_out_codes_that_hardly_move() -> None:
    """A unit that a model does not use still follows all factors a little."""
    v = np.array(list(np.ndindex(8, 8)) * 8, dtype=float)
    faint = v.sum(axis=1, keepdims=True)
    codes = np.hstack([v, faint / 50])  # a range of 14 / 50 beside two of 7: a 25th
    used, all_of_them = info_mec(codes, v), info_mec(codes, v, least_range=0)
    assert used.details["active"] == [True, True, False]
    assert used.value == pytest.approx(info_mec(v, v).value, abs=0.02)
    assert used.details["info_c"] == pytest.approx(info_mec(v, v).details["info_c"], abs=0.02)
    assert all_of_them.details["active"] == [True] * 3
    assert all_of_them.value < used.value - 0.2
    assert all_of_them.details["info_c"] < used.details["info_c"] - 0.1
    assert used.details["info_e"] == all_of_them.details["info_e"]
    assert used.details["matrix"] == pytest.approx(all_of_them.details["matrix"])
    assert info_mec(np.hstack([v, faint / 30]), v).details["active"] == [True] * 3
    assert info_mec(codes, v, discrete_codes=True).details["active"] == [True] * 3
    with pytest.raises(UsageError, match="least_range must be from 0 to below 1"):
        info_mec(codes, v, least_range=1)


def test_info_e_is_nothing_for_codes_that_know_nothing_however_many_they_are() -> None:
    """More names than samples fit anything that they are fitted to."""
    rng = np.random.default_rng(8)
    v = np.stack([rng.integers(0, 4, 300), rng.normal(size=300)], axis=1)
    codes = rng.integers(0, 20, (300, 30))
    kinds: list[Any] = ["categorical", "continuous"]
    found = info_mec(codes, v, discrete_codes=True, kinds=kinds).details
    assert found["info_e"] < 0.05
    assert found["floors"]["info_e"] < 0.05
    assert explained(rng.normal(size=(300, 190)), v, kinds) < 0.05


def test_graph_distances_by_hand() -> None:
    assert shd(CHAIN, CHAIN).value == 0
    turned = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 0]])
    assert shd(turned, CHAIN).value == 1
    extra = CHAIN + np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert shd(extra, CHAIN).value == 1
    assert shd(np.zeros((3, 3)), CHAIN).value == 2
    found = edge_scores(turned, CHAIN)
    assert found.value == 0.5
    assert found.details["false_discovery_rate"] == 0.5
    assert (found.details["reversed"], found.details["extra"], found.details["missing"]) == (
        1,
        0,
        0,
    )


def test_graphs_by_name_may_come_in_any_order() -> None:
    a = nx.DiGraph([("light", "shadow"), ("angle", "shadow")])
    b = nx.DiGraph([("angle", "shadow"), ("light", "shadow")])
    assert shd(a, b).value == 0
    with pytest.raises(UsageError, match="nodes"):
        shd(a, nx.DiGraph([("angle", "shade"), ("light", "shade")]))
    with pytest.raises(UsageError, match="square"):
        shd(np.zeros((2, 3)), np.zeros((2, 3)))


def test_the_hinge_bias_is_the_best_there_is() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        p, sign = rng.normal(size=15), np.sign(rng.normal(size=15))

        def loss(b: float, p: np.ndarray = p, sign: np.ndarray = sign) -> float:
            return float(np.maximum(0, 1 - sign * (p + b)).sum())

        best = min(loss(b) for b in np.linspace(-5, 5, 2001))
        assert loss(_hinge_bias(p, sign)) <= best + 1e-9


def test_attributes_are_read_along_the_difference_of_means() -> None:
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, (2000, 2))
    z = y @ np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]) + 0.3 * rng.normal(size=(2000, 3))
    score = attribute_accuracy(z[:1000], y[:1000], z[1000:], y[1000:])
    assert score.value > 0.98
    assert score.noise_floor == pytest.approx(0.5, abs=0.05)
    blind = attribute_accuracy(
        rng.normal(size=(1000, 3)), y[:1000], rng.normal(size=(1000, 3)), y[1000:]
    )
    assert blind.value == pytest.approx(0.5, abs=0.06)
    with pytest.raises(UsageError, match="column 0 has 3 values"):
        attribute_accuracy(z[:3], [[0], [1], [2]], z[:3], [[0], [1], [2]])


def test_actions_and_their_factors() -> None:
    probabilities = np.eye(6)[[0, 1, 2, 3, 5, 5]]
    truth = [0, 0, 2, 2, 4, 5]
    assert action_accuracy(probabilities, truth).value == pytest.approx(3 / 6)
    assert factor_accuracy(probabilities, truth).value == 1
    assert action_accuracy(probabilities, truth).noise_floor == pytest.approx(2 / 6)
    assert factor_accuracy([0, 1], [1, 0], factor_of=[0, 1]).value == 0
    with pytest.raises(UsageError, match="actions"):
        action_accuracy([0, 1], [0.5, 1.5])
    with pytest.raises(UsageError, match="give a row a pair"):
        action_accuracy([0, 1], [0])


@pytest.mark.parametrize("n", [60, 200, 300])
def test_quantities_of_few_samples_are_no_names(n: int) -> None:
    """Each value occurs once, whatever the number of samples."""
    v = np.random.default_rng(0).normal(size=(n, 2))
    assert irs(np.random.default_rng(1).normal(size=(n, 2)), v).value < 0.8
    assert mig(v, v).value > 0.4
    assert z_diff(v, v).value > 0.9
    assert info_mec(v, v).value > 0.5


def test_neighbours_of_fewer_samples_than_classes_tell_nothing() -> None:
    v = np.arange(8.0)[:, None]
    assert np.isfinite(info_mec(v, v).value)


def test_names_and_a_bare_matrix_are_not_compared() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    with pytest.raises(UsageError, match="order of nodes is unknown"):
        shd(CHAIN, graph)
    assert shd(Graph(("b", "a", "c"), [[0, 0, 1], [1, 0, 0], [0, 0, 0]]), graph).value == 0


def test_z_diff_tells_which_factors_are_taken_for_each_other() -> None:
    """Of three factors the code knows the first: the other two can only be guessed."""
    v = np.array(list(np.ndindex(6, 6, 6)), dtype=float)
    found = z_diff(v[:, :1], v, train=2000, test=1000, floor=False)
    confusion = np.array(found.details["confusion"])
    assert confusion.sum() == 1000
    assert np.trace(confusion) / 1000 == found.value
    assert confusion[0, 0] == confusion[0].sum() == confusion[:, 0].sum()
    assert confusion[1:, 1:].min() > 0
