"""Every metric keeps its promises, and every check notices when one does not."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from disentwine.errors import UsageError
from disentwine.metrics.registry import METRICS

from .checks import (
    Function,
    check_independent,
    check_invariance,
    check_perfect,
    check_range,
    check_sample_order,
    noisy_codes,
    scores,
)

NAMES = list(METRICS)


def light(name: str) -> Function:
    """The metric with as many sampled points as these checks need."""
    function = METRICS[name].function
    options = {"train": 1500, "test": 1000} if name in ("z-diff", "factor-vae") else {}
    return lambda codes, factors, **more: function(codes, factors, **options, **more)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_samples_does_not_matter(name: str) -> None:
    check_sample_order(light(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_perfect_code_has_the_largest_score(name: str) -> None:
    check_perfect(light(name))


@pytest.mark.parametrize("name", NAMES)
def test_an_independent_code_scores_its_noise_floor(name: str) -> None:
    check_independent(light(name))


@pytest.mark.parametrize("name", NAMES)
def test_range(name: str) -> None:
    check_range(light(name))


@pytest.mark.parametrize(
    ("name", "invariance"),
    [(name, invariance) for name in NAMES for invariance in sorted(METRICS[name].invariant_to)],
)
def test_declared_invariances(name: str, invariance: str) -> None:
    check_invariance(light(name), invariance)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_metric_takes_is_what_its_function_takes(name: str) -> None:
    metric = METRICS[name]
    taken = inspect.signature(metric.function).parameters
    declared = (metric.takes_kinds, metric.takes_inactive, metric.takes_codes)
    assert declared == tuple(key in taken for key in ("kinds", "inactive", "discrete_codes"))


NAMING = [name for name in NAMES if METRICS[name].takes_codes]


def renamed(codes: np.ndarray) -> np.ndarray:
    """Other numbers for the same names."""
    rng = np.random.default_rng(7)
    columns = [np.unique(c, return_inverse=True)[1] for c in codes.T]
    return np.stack([rng.permutation(40)[c] for c in columns], axis=1).astype(float)


@pytest.mark.parametrize("name", NAMING)
def test_codes_that_are_names_may_be_renamed(name: str) -> None:
    z, v = noisy_codes()
    codes = np.round(2 * z)
    function = partial(light(name), discrete_codes=True, floor=False)
    # Samples are held out by a hash of their content, which differs: hence the mean of several.
    before, after = (
        np.mean([scores(function, table, v, seed=seed)[0].value for seed in range(8)])
        for table in (codes, renamed(codes))
    )
    assert before == pytest.approx(after, abs=0.03)
    check_perfect(lambda codes, factors, **options: function(renamed(codes), factors, **options))


def misaligned(function: Function) -> Function:
    """Codes are dealt to other samples."""

    def broken(z: Any, v: Any, **options: Any) -> Any:
        return function(np.random.default_rng(5).permutation(np.asarray(z)), v, **options)

    return broken


def leaking(function: Function) -> Function:
    """The value has seen the factors; the floor has not."""

    def broken(z: Any, v: Any, **options: Any) -> Any:
        honest, cheating = function(z, v, **options), function(np.asarray(v), v, **options)
        pairs = (
            zip(honest, cheating, strict=True)
            if isinstance(honest, tuple)
            else [(honest, cheating)]
        )
        answers = tuple(replace(a, value=b.value) for a, b in pairs)
        return answers if isinstance(honest, tuple) else answers[0]

    return broken


def first_half_only(function: Function) -> Function:
    """Later samples are not looked at."""
    return lambda z, v, **options: function(np.asarray(z)[::2], np.asarray(v)[::2], **options)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (misaligned, check_perfect),
        (leaking, check_independent),
        (first_half_only, check_sample_order),
    ],
)
def test_the_checks_notice_a_broken_metric(
    name: str, broken: Callable[[Function], Function], check: Callable[[Function], None]
) -> None:
    with pytest.raises(AssertionError):
        check(broken(light(name)))


def any_sample(self: Any, samples: Any, factor: int, rng: np.random.Generator) -> Any:
    return rng.integers(self.n, size=samples.shape)


MUTANTS: dict[str, tuple[str, str, Any]] = {
    "z-diff": ("_inputs", "ValueIndex.like", any_sample),
    "factor-vae": ("_inputs", "ValueIndex.like", any_sample),
    "sap": ("disentanglement.gaps", "gap_of_best_two", lambda m: m.min(axis=0)),
    "mig": ("disentanglement.gaps", "entropy", lambda classes: 2.0),
    "dci": ("disentanglement.dci", "_split_gains", lambda predictors, d: np.ones(d)),
    "modularity": (
        "disentanglement.modularity",
        "information_matrix",
        lambda z, v: np.ones((3, 3)),
    ),
    "explicitness": ("disentanglement.modularity", "_mean_area", lambda z, y, a, b: 0.7),
    "info-mec": ("disentanglement.info_mec", "_share_of_best", lambda m, axis: float(m.mean())),
    "irs": ("disentanglement.irs", "class_table", lambda v, bins: np.zeros(v.shape, np.int64)),
    "mic-tic": ("disentanglement.mic_tic", "_mic", lambda matrix: float(matrix.mean())),
}
"""For each metric one step of its own code, replaced by a wrong one."""


@pytest.mark.parametrize("name", NAMES)
def test_the_checks_notice_a_mutation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module_name, attribute, replacement = MUTANTS[name]
    module = importlib.import_module(f"disentwine.metrics.{module_name}")
    target = module
    *parents, last = attribute.split(".")
    for parent in parents:
        target = getattr(target, parent)
    monkeypatch.setattr(target, last, replacement)
    with pytest.raises(AssertionError):
        check_perfect(light(name))


GOOD = np.random.default_rng(0).normal(size=(30, 2))
LABELS = np.random.default_rng(1).integers(0, 3, (30, 2)).astype(float)
WITH_NAN = np.where(np.arange(60).reshape(30, 2) == 7, np.nan, GOOD)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("codes", "factors", "hint"),
    [
        (WITH_NAN, LABELS, "latents holds NaN or infinity, first in row 3, column 1"),
        (GOOD, np.where(np.isnan(WITH_NAN), np.inf, LABELS), "factors holds NaN"),
        (GOOD[:1], LABELS[:1], "latents has 1"),
        (GOOD, LABELS[:20], "20"),
        (GOOD[:, :0], LABELS, "latents must be a table"),
        (GOOD, LABELS[:, :0], "factors must be a table"),
        (GOOD[None], LABELS, "latents must be a table"),
        ([["a", "b"]] * 30, LABELS, "latents must be a table of numbers"),
    ],
    ids=["nan", "infinity", "one sample", "lengths", "no codes", "no factors", "3 axes", "text"],
)
def test_bad_input_is_named(name: str, codes: Any, factors: Any, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        METRICS[name].function(codes, factors)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mic-tic"])
def test_a_constant_factor_is_named(name: str) -> None:
    with pytest.raises(UsageError, match="factors: column 1 has one value only"):
        METRICS[name].function(GOOD, np.stack([LABELS[:, 0], np.ones(30)], axis=1))


@pytest.mark.parametrize("name", NAMES)
def test_dead_codes_are_harmless(name: str) -> None:
    """A collapsed unit is the commonest thing a VAE has."""
    for codes in (np.hstack([LABELS, np.zeros((30, 1))]), np.zeros((30, 2))):
        answer = METRICS[name].function(codes, LABELS)
        for score in answer if isinstance(answer, tuple) else (answer,):
            assert np.isfinite(score.value)


@pytest.mark.parametrize("name", ["sap", "mig", "modularity", "irs", "info-mec", "mic-tic"])
def test_a_matrix_has_a_row_for_every_code(name: str) -> None:
    """Rows are told by their place: without those of constant codes they would be taken for others."""
    codes = np.hstack([np.full((30, 1), 5.0), LABELS])
    matrix = scores(METRICS[name].function, codes, LABELS)[0].details["matrix"]
    assert matrix.shape == (3, 2)
    assert matrix[0] == pytest.approx(0, abs=1e-12)
    assert matrix[1:].max(axis=1).min() > 0.1


ONE_YES = np.stack([np.arange(100) == 3, np.arange(100) < 50], axis=1).astype(float)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mic-tic"])
@pytest.mark.parametrize("factors", [LABELS[:2], LABELS[:3], ONE_YES], ids=["two", "three", "yes"])
def test_values_that_are_seen_once_are_harmless(name: str, factors: np.ndarray) -> None:
    """Whichever part of the samples holds them, that for learning or that for measuring."""
    codes = np.random.default_rng(2).normal(size=(len(factors), 3))
    for seed in range(4):
        assert np.isfinite(scores(light(name), codes, factors, seed=seed)[0].value)


def test_what_cannot_be_learnt_counts_as_chance() -> None:
    two = [[0.0, 1.0], [1.0, 0.0]]
    assert METRICS["explicitness"].function(two, two).value == 0
    slow = METRICS["dci"].function(two, two, learner="gradient-boosting")
    assert (slow.value, slow.details["informativeness"]) == (0, 0)
