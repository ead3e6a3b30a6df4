from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching

from disentwine.errors import UsageError
from disentwine.metrics.disentanglement import _mic_kernel
from disentwine.metrics.disentanglement.mic_tic import mic, mine, tic

SELECTION = Path(__file__).with_name("mic_tic_cases.json")
ALL_CASES = Path(os.environ.get("DISENTWINE_DATA", "missing")).parent / "oracles" / "mine.json"


def cases(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return found


def differences(case: dict[str, Any]) -> list[float]:
    options = {"alpha": case["alpha"], "c": case["c"]}
    found = []
    for estimator in ("approx", "e"):
        pair = {"x": case["x"], "y": case["y"], "estimator": estimator, **options}
        found += [
            mic(**pair).value - case[f"mic_{estimator}"],
            tic(**pair).value - case[f"tic_{estimator}"],
            tic(**pair, normalised=False).value - case[f"tic_{estimator}_sum"],
        ]
    return found


@pytest.mark.parametrize("case", cases(SELECTION), ids=lambda c: f"{c['relation']}-{len(c['x'])}")
def test_values_are_those_of_minepy(case: dict[str, Any]) -> None:
    assert np.abs(differences(case)).max() < 1e-9


@pytest.mark.skipif(
    not ALL_CASES.is_file(), reason="needs oracles/mine.json beside DISENTWINE_DATA"
)
def test_values_are_those_of_minepy_in_all_worked_cases() -> None:
    worst = max(cases(ALL_CASES), key=lambda case: np.abs(differences(case)).max())
    assert np.abs(differences(worst)).max() < 1e-9, worst["relation"]


def test_published_check_values() -> None:
    x = np.linspace(0, 1, 1000)
    y = np.sin(10 * np.pi * x) + x
    assert mic(x, y).value == pytest.approx(1.0, abs=1e-12)
    assert tic(x, y, normalised=False).value == pytest.approx(67.66123, abs=5e-6)
    assert tic(x, y).value == pytest.approx(0.4571705, abs=5e-8)
    assert mic(x, y, estimator="e").value == pytest.approx(0.7689269, abs=5e-8)
    assert tic(x, y, estimator="e").value == pytest.approx(0.3182252, abs=5e-8)


@pytest.fixture
def pair() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    x = random.normal(size=150)
    return x, np.round(x**2 + 0.3 * random.normal(size=150), 1)


@pytest.mark.parametrize("estimator", ["approx", "e"])
@pytest.mark.parametrize("metric", [mic, tic])
def test_monotone_transforms_and_sample_order_change_nothing(metric, estimator, pair) -> None:
    x, y = pair
    value = metric(x, y, estimator=estimator).value
    order = np.random.default_rng(0).permutation(len(x))
    assert metric(np.exp(x), y**3, estimator=estimator).value == value
    assert metric(x[order], y[order], estimator=estimator).value == value


def test_approx_is_symmetric_and_e_is_not(pair) -> None:
    x, y = pair
    assert mic(x, y).value == pytest.approx(mic(y, x).value, abs=1e-12)
    assert tic(x, y).value == pytest.approx(tic(y, x).value, abs=1e-12)
    assert tic(x, y, estimator="e").value != pytest.approx(tic(y, x, estimator="e").value, abs=1e-6)


@pytest.mark.parametrize("estimator", ["approx", "e"])
def test_a_constant_tells_nothing_and_a_copy_everything(estimator) -> None:
    x = np.arange(64.0)
    assert mic(x, np.ones(64), estimator=estimator).value == 0
    assert tic(np.ones(64), x, estimator=estimator).value == 0
    assert mic(x, x, estimator=estimator).value == pytest.approx(1)
    assert mic(x, x > 31, estimator=estimator).value == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "mic_floor", "tic_floor"), [(10, 0.22, 0.11), (None, 0.24, 0.13)]
)
def test_noise_floor_of_a_hundred_samples(values, mic_floor, tic_floor) -> None:
    random = np.random.default_rng(0)
    codes, factors = random.normal(size=(2, 100, 12))
    if values is not None:
        factors = random.integers(0, values, size=(100, 12))
    by_mic, by_tic = mine(codes, factors, floor_permutations=1)
    for score, floor in ((by_mic, mic_floor), (by_tic, tic_floor)):
        assert score.details["matrix"].mean() == pytest.approx(floor, abs=0.01)
        assert score.details["matched_noise_floor"] == pytest.approx(floor, abs=0.03)
        assert score.noise_floor == pytest.approx(score.value, abs=0.03)
        assert score.noise_floor > score.details["matched_noise_floor"]


def test_matrix_holds_every_pair_and_each_factor_counts_by_its_best_code() -> None:
    random = np.random.default_rng(1)
    factors = random.integers(0, 5, size=(120, 3)).astype(float)
    codes = np.column_stack([factors[:, [2, 0]], random.normal(size=120)])
    by_mic, by_tic = mine(codes, factors, c=5, seed=7)
    for score, metric in ((by_mic, mic), (by_tic, tic)):
        matrix = score.details["matrix"]
        for i, j in np.ndindex(3, 3):
            assert matrix[i, j] == metric(codes[:, i], factors[:, j], c=5).value
        assert score.value == pytest.approx(matrix.max(axis=0).mean())
        assert score.details["matched"] == pytest.approx(np.diag(matrix).mean())
        assert score.noise_floor is not None
        assert 0 < score.noise_floor < score.value
    assert (by_mic.name, by_tic.name, by_mic.n) == ("mic", "tic", 120)
    assert "diagonal" not in mine(codes[:, :2], factors)[0].details
    assert mine(codes, factors, floor_permutations=0)[0].noise_floor is None


def test_same_seed_same_floor_whatever_the_order_and_the_threads(monkeypatch) -> None:
    random = np.random.default_rng(2)
    codes, factors = random.normal(size=(2, 60, 2))
    order = random.permutation(60)
    floors = []
    for threads, rows in ((1, slice(None)), (3, slice(None)), (3, order)):
        monkeypatch.setattr(_mic_kernel, "THREADS", threads)
        floors.append(mine(codes[rows], factors[rows], seed=5)[1].noise_floor)
    assert floors[0] == floors[1] == floors[2]
    assert mine(codes, factors, seed=6)[1].noise_floor != floors[0]


def test_a_bar_counts_every_pair_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    codes, factors = np.random.default_rng(0).normal(size=(2, 40, 3))
    mine(codes, factors, floor_permutations=2, progress=True)
    assert "27/27" in capsys.readouterr().err
    mine(codes, factors, floor_permutations=2)
    assert capsys.readouterr().err == ""


GOOD = np.arange(8.0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"x": [1.0, np.nan, 2, 3]}, "x holds NaN"),
        ({"y": [1.0, np.inf, 2, 3]}, "y holds NaN or inf"),
        ({"x": GOOD[:5]}, "x has 5 samples and y has 8"),
        ({"x": [], "y": []}, "x has 0 samples"),
        ({"x": [1, 2, 3], "y": [1, 2, 3]}, "x has 3 samples"),
        ({"y": np.ones((8, 2))}, "y must be one column"),
        ({"x": ["a"] * 8}, "x must be a table of numbers"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 2.5}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"c": 0}, "c must"),
        ({"c": float("inf")}, "c must"),
        ({"estimator": "aprox"}, "Did you mean 'approx'"),
    ],
)
def test_bad_arguments_are_named(arguments, named) -> None:
    for metric in (mic, tic):
        with pytest.raises(UsageError, match=named):
            metric(**{"x": GOOD, "y": GOOD, **arguments})


def test_bad_tables_are_named() -> None:
    with pytest.raises(UsageError, match="latents has 8 samples and factors has 4"):
        mine(GOOD, GOOD[:4])
    with pytest.raises(UsageError, match="floor_permutations"):
        mine(GOOD, GOOD, floor_permutations=-1)


def test_without_numba_the_error_says_what_to_install() -> None:
    code = """
        import sys
        sys.modules["numba"] = None
        from disentwine.errors import UsageError
        from disentwine.metrics.disentanglement.mic_tic import mic
        try:
            mic(range(8), range(8))
        except UsageError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'disentwine[metrics]'" in done.stdout


def test_compiles_where_no_cache_can_be_written(monkeypatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def successor(number: int) -> int:
        return number + 1

    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit("int64(int64)", cache=True)(successor)
    assert _mic_kernel.entry("int64(int64)")(successor)(1) == 2
