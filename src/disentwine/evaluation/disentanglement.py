"""All metrics over seeds; score to JSON; parse --metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Factor
from disentwine.core.score import Score
from disentwine.core.types import FloatArray
from disentwine.errors import DisentwineError, UsageError, did_you_mean
from disentwine.metrics.registry import METRICS, Metric

MEASURED_TOGETHER = {"mic": "mic-tic", "tic": "mic-tic"}
"""Scores that one metric answers with, by their own names."""

MOST_NAMES = 256
"""Of one factor, for metrics that learn to tell them apart: of thousands it takes hours."""

FEWEST_IMAGES = 10
"""With labels, for a score: with fewer it tells of chance alone."""

TELL_FACTORS_APART = frozenset({"z-diff", "factor-vae", "dci", "modularity", "info-mec"})
"""Metrics that are 1 where there is a single factor, whatever the codes."""

ONE_FACTOR = "it tells factors apart, and there is a single one that varies"

NO_QUANTITIES = "it compares quantities, and these codes are names out of codebooks"

MetricNames = Literal["all", "none"] | Sequence[str]


@dataclass(frozen=True)
class Scores:
    """Arguments:
    scores: those that apply; their details hold `spread` over seeds and `seconds`.
    skipped: the reason for each that does not, and for each factor that scores are not of.
    """

    scores: list[Score]
    skipped: dict[str, str]


def chosen_metrics(names: MetricNames) -> list[str]:
    """The metrics that a user asked for, by name."""
    if names == "all":
        return list(METRICS)
    wanted = [] if names == "none" else [MEASURED_TOGETHER.get(name, name) for name in names]
    for name in wanted:
        if name not in METRICS:
            raise UsageError(f"there is no metric '{name}'. {did_you_mean(name, METRICS)}")
    return list(dict.fromkeys(wanted))


def score_codes(
    codes: NDArray[np.floating],
    factors: FloatArray,
    spec: Sequence[Factor],
    *,
    discrete_codes: bool = False,
    inactive: float | None = None,
    metrics: MetricNames = "all",
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
) -> Scores:
    """Measure how codes relate to factors.

    Factors that do not vary among these samples, and samples without labels, are left out; so are
    factors that fewer than half of the samples with any label carry, for which the others would go.

    Arguments:
        codes: (n, d).
        factors: (n, k), NaN where there is no label.
        spec: name and kind of each factor.
        discrete_codes: codes are names: metrics that compare quantities do not apply.
        inactive: codes of less variance count as constant where a metric can be told so.
        metrics: names from `disentwine.metrics.METRICS`, "all" or "none".
        seeds: metrics that sample are averaged over these.
        on_metric: called with the name of each metric before it is measured.

    >>> v = np.random.default_rng(0).integers(0, 4, (100, 2)).astype(float)
    >>> score_codes(v, v, [Factor("a"), Factor("b")], metrics=["mig"]).scores[0].name
    'mig'
    """
    names, each = chosen_metrics(metrics), list(seeds)
    if not each:
        raise UsageError("seeds: give at least one")
    if not names:
        return Scores([], {})
    if factors.shape[1] == 0:
        return Scores([], dict.fromkeys(names, "the data set has no factors"))
    enough, skipped = _labelled_enough(factors, spec)
    factors, spec = factors[:, enough], list(compress(spec, enough))
    labelled = np.isfinite(factors).all(axis=1)
    if labelled.sum() < FEWEST_IMAGES:
        return Scores([], skipped | dict.fromkeys(names, _too_few(factors, spec)))
    z, v = codes[labelled], factors[labelled]
    varies = np.ptp(v, axis=0) > 0
    if not varies.any():
        return Scores([], skipped | dict.fromkeys(names, "no factor varies among these images"))
    kinds = [factor.kind for factor in compress(spec, varies)]
    kept = [factor.name for factor in compress(spec, varies)]
    crowded = [
        f"'{name}' has {len(np.unique(column)):,} names"
        for name, kind, column in zip(kept, kinds, v[:, varies].T, strict=True)
        if kind == "categorical" and len(np.unique(column)) > MOST_NAMES
    ]
    scores: list[Score] = []
    for name in names:
        if discrete_codes and not METRICS[name].takes_names:
            skipped[name] = NO_QUANTITIES
            continue
        if crowded and METRICS[name].takes_kinds:
            skipped[name] = f"{crowded[0]}, more than {MOST_NAMES} to be learnt by a classifier"
            continue
        if len(kept) == 1 and name in TELL_FACTORS_APART:
            skipped[name] = ONE_FACTOR
            continue
        if on_metric is not None:
            on_metric(name)
        options: dict[str, object] = {"kinds": kinds} if METRICS[name].takes_kinds else {}
        if inactive is not None and METRICS[name].takes_inactive:
            options["inactive"] = inactive
        if discrete_codes:
            options["discrete_codes"] = True
        try:
            scores += _over_seeds(METRICS[name], z, v[:, varies], each, kept, options)
        except DisentwineError as error:
            skipped[name] = str(error)
    return Scores(scores, skipped)


def _labelled_enough(
    factors: FloatArray, spec: Sequence[Factor]
) -> tuple[NDArray[np.bool_], dict[str, str]]:
    """Which factors (k,) half of the images with any label carry, all where none does; and why not the
    others."""
    known = np.isfinite(factors)
    counts, images = known.sum(axis=0), known.any(axis=1).sum()
    enough = 2 * counts >= images
    if not enough.any():
        enough[:] = True
    return enough, {
        f"factor '{factor.name}'": f"{count:,} of {images:,} images with labels carry it, fewer than half"
        for factor, count in compress(zip(spec, counts, strict=True), ~enough)
    }


def _too_few(factors: FloatArray, spec: Sequence[Factor]) -> str:
    known = np.isfinite(factors)
    counts, complete = known.sum(axis=0), known.all(axis=1).sum()
    least = int(counts.argmin())
    return (
        f"{complete:,} of these images carry all labels, fewer than {FEWEST_IMAGES}; "
        f"'{spec[least].name}' is on {counts[least]:,} of {len(factors):,}: "
        f"label more of them, or leave it out"
    )


def _over_seeds(
    metric: Metric,
    z: NDArray[np.floating],
    v: FloatArray,
    seeds: list[int],
    factors: list[str],
    options: Mapping[str, object],
) -> list[Score]:
    """One pass a seed, the noise floor in the first only; the mean, with its spread."""
    start = time.perf_counter()
    passes: list[tuple[Score, ...]] = []
    for i, seed in enumerate(seeds if metric.seeded else seeds[:1]):
        more = {} if i == 0 else {"floor": False}
        answer = metric.function(z, v, seed=seed, **options, **more)
        passes.append(answer if isinstance(answer, tuple) else (answer,))
    seconds = time.perf_counter() - start
    merged = []
    for same in zip(*passes, strict=True):
        values = [score.value for score in same]
        details = {
            **same[0].details,
            "about": metric.question,
            "factors": factors,
            "spread": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "seeds": len(values),
            "seconds": seconds / len(passes[0]),
        }
        merged.append(replace(same[0], value=float(np.mean(values)), details=details))
    return merged


LIKELIHOOD = "log-likelihood"
"""A score of a model, not of its codes; measured only when asked for, since it takes long."""


def read_metrics(words: str) -> tuple[list[str], bool]:
    """The metrics of codes that were named, and whether the likelihood was.

    >>> read_metrics("mig,sap,log-likelihood")
    (['mig', 'sap'], True)
    """
    from disentwine.evaluation.disentanglement import MEASURED_TOGETHER, chosen_metrics
    from disentwine.metrics.registry import METRICS

    names = [name for name in map(str.strip, words.split(",")) if name not in ("", "none")]
    known = {*METRICS, *MEASURED_TOGETHER, LIKELIHOOD, "all"}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no metric '{name}'. {did_you_mean(name, known)}")
    of_codes = [name for name in names if name != LIKELIHOOD]
    return chosen_metrics("all" if "all" in of_codes else of_codes), LIKELIHOOD in names
