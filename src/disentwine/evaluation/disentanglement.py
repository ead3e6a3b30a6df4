"""All disentanglement metrics over seeds, and parsing of `--metrics`."""

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
from disentwine.evaluation.likelihood import LIKELIHOOD
from disentwine.metrics.registry import METRICS, Metric

MEASURED_TOGETHER = {"mic": "mic-tic", "tic": "mic-tic"}
"""The metric that computes a score of another name."""

MOST_CATEGORIES = 256
"""Most categories of a factor for metrics that train classifiers: thousands take hours."""

FEWEST_IMAGES = 10
"""Fewest labelled images for a score: with fewer it is mostly chance."""

COMPARE_FACTORS = frozenset({"z-diff", "factor-vae", "dci", "modularity", "info-mec"})
"""Metrics that are 1 where there is a single factor, whatever the latents."""

ONE_FACTOR = "it compares factors, and a single one varies"

NO_QUANTITIES = "it needs quantities, and the latents are codes of a quantizer"

MetricNames = Literal["all", "none"] | Sequence[str]


@dataclass(frozen=True)
class MetricScores:
    """Scores of latents and factors.

    Arguments:
        scores: of the metrics that apply; their details hold `spread` over seeds and `seconds`.
        skipped: the reason for each metric that does not apply, and for each factor left out.
    """

    scores: list[Score]
    skipped: dict[str, str]


def chosen_metrics(names: MetricNames) -> list[str]:
    """The metrics that a user asked for, by name."""
    if names == "all":
        return list(METRICS)
    chosen = [] if names == "none" else [MEASURED_TOGETHER.get(name, name) for name in names]
    for name in chosen:
        if name not in METRICS:
            raise UsageError(f"there is no metric '{name}'. {did_you_mean(name, METRICS)}")
    return list(dict.fromkeys(chosen))


def score_latents(
    latents: NDArray[np.floating] | None,
    factors: FloatArray,
    spec: Sequence[Factor],
    *,
    discrete_codes: bool = False,
    inactive: float | None = None,
    metrics: MetricNames = "all",
    seeds: Iterable[int] = (0,),
    on_metric: Callable[[str], None] | None = None,
) -> MetricScores:
    """Measure how latents relate to factors.

    Constant factors and unlabelled samples are left out. So are factors with labels on fewer than
    half of the samples that have any, because all other samples would be lost.

    Arguments:
        latents: (n, d); none where a model's latents are no table of numbers.
        factors: (n, k), NaN where there is no label.
        spec: name and kind of each factor.
        discrete_codes: the latents are codes of a quantizer: metrics of quantities do not apply.
        inactive: latents of less variance count as constant in metrics that support it.
        metrics: names from `disentwine.metrics.METRICS`, "all" or "none".
        seeds: metrics that sample are averaged over these.
        on_metric: called with the name of each metric before it is measured.

    >>> v = np.random.default_rng(0).integers(0, 4, (100, 2)).astype(float)
    >>> score_latents(v, v, [Factor("a"), Factor("b")], metrics=["mig"]).scores[0].name
    'mig'
    """
    names, each = chosen_metrics(metrics), list(seeds)
    if not each:
        raise UsageError("seeds: give at least one")
    if not names:
        return MetricScores([], {})
    if latents is None:
        return MetricScores([], dict.fromkeys(names, "the latents are no table of numbers"))
    if factors.shape[1] == 0:
        return MetricScores([], dict.fromkeys(names, "the data set has no factors"))
    enough, skipped = _labelled_enough(factors, spec)
    factors, spec = factors[:, enough], list(compress(spec, enough))
    labelled = np.isfinite(factors).all(axis=1)
    if labelled.sum() < FEWEST_IMAGES:
        return MetricScores([], skipped | dict.fromkeys(names, _too_few(factors, spec)))
    z, v = latents[labelled], factors[labelled]
    varies = np.ptp(v, axis=0) > 0
    if not varies.any():
        return MetricScores(
            [], skipped | dict.fromkeys(names, "no factor varies among these images")
        )
    kinds = [factor.kind for factor in compress(spec, varies)]
    kept = [factor.name for factor in compress(spec, varies)]
    crowded = [
        f"'{name}' has {len(np.unique(column)):,} categories"
        for name, kind, column in zip(kept, kinds, v[:, varies].T, strict=True)
        if kind == "categorical" and len(np.unique(column)) > MOST_CATEGORIES
    ]
    scores: list[Score] = []
    for name in names:
        if discrete_codes and not METRICS[name].takes_codes:
            skipped[name] = NO_QUANTITIES
            continue
        if crowded and METRICS[name].takes_kinds:
            skipped[name] = f"{crowded[0]}, more than {MOST_CATEGORIES}, too many for a classifier"
            continue
        if len(kept) == 1 and name in COMPARE_FACTORS:
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
    return MetricScores(scores, skipped)


def _labelled_enough(
    factors: FloatArray, spec: Sequence[Factor]
) -> tuple[NDArray[np.bool_], dict[str, str]]:
    """(k,) whether half of the images with any label have one of this factor, true for all where no
    factor has; and why the others are left out."""
    known = np.isfinite(factors)
    counts, images = known.sum(axis=0), known.any(axis=1).sum()
    enough = 2 * counts >= images
    if not enough.any():
        enough[:] = True
    return enough, {
        f"factor '{factor.name}'": f"{count:,} of {images:,} labelled images have it, fewer than half"
        for factor, count in compress(zip(spec, counts, strict=True), ~enough)
    }


def _too_few(factors: FloatArray, spec: Sequence[Factor]) -> str:
    known = np.isfinite(factors)
    counts, complete = known.sum(axis=0), known.all(axis=1).sum()
    least = int(counts.argmin())
    return (
        f"{complete:,} of these images have all labels, fewer than {FEWEST_IMAGES}; "
        f"'{spec[least].name}' is on {counts[least]:,} of {len(factors):,}: "
        f"label more images, or leave it out"
    )


def _over_seeds(
    metric: Metric,
    z: NDArray[np.floating],
    v: FloatArray,
    seeds: list[int],
    factors: list[str],
    options: Mapping[str, object],
) -> list[Score]:
    """The mean over seeds, with its spread; the chance level is that of the first seed."""
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
            "about": metric.about,
            "factors": factors,
            "spread": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "seeds": len(values),
            "seconds": seconds / len(passes[0]),
        }
        merged.append(replace(same[0], value=float(np.mean(values)), details=details))
    return merged


def read_metrics(words: str) -> tuple[list[str], bool]:
    """The metrics of latents that were named, and whether the log-likelihood was.

    >>> read_metrics("mig,sap,log-likelihood")
    (['mig', 'sap'], True)
    """
    names = [name for name in map(str.strip, words.split(",")) if name not in ("", "none")]
    known = {*METRICS, *MEASURED_TOGETHER, LIKELIHOOD, "all"}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no metric '{name}'. {did_you_mean(name, known)}")
    of_latents = [name for name in names if name != LIKELIHOOD]
    return chosen_metrics("all" if "all" in of_latents else of_latents), LIKELIHOOD in names
