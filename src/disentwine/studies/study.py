"""Definition of a study: trials, measures, published numbers; rows of its results."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from disentwine.runs.checkpoint import commit, versions
from disentwine.runs.storage import write_atomically
from disentwine.studies.learning_curves import Watch
from disentwine.studies.scheduler import Measure
from disentwine.studies.summary import Row, Summary
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

Profile = Literal["smoke", "paper"]

Published = Mapping[tuple[str, ...], float]
"""A paper's numbers in natural units, by (system, data, metric) or (system, data, metric, note)."""


def no_derived_rows(results: Sequence[TrialResult]) -> list[TrialResult]:
    """No derived rows."""
    return []


@dataclass(frozen=True)
class Study:
    """A table of a paper, reproduced.

    Arguments:
        name: such as "causalvae".
        about: title of its page.
        trials: the trials of a profile with these seeds.
        measure: scores of a run, by profile.
        published: the paper's numbers.
        published_only: numbers of systems that are not trained here, by (system, data, metric, note);
            rows without a value of ours.
        tables: columns by the title of their table; one table for each data set.
        figures: function of the results, the folder of all runs and a folder for the figures; returns
            caption and file of each figure.
        watch: scores at every checkpoint, by profile.
        derived_rows: rows made of other rows, such as the best setting of a system.
        stages: number of stages that are run by default; None for all.
        runs: name of the folders of runs and of records, for studies that share trainings; by default
            the name of the study.
        summary: what was compared, main numbers and shortfalls, from the rows.
        notes: paragraphs of the page, above the tables.
        dataset_notes: paragraphs that are shown if the page has rows of the data set.
    """

    name: str
    about: str
    trials: Callable[[Profile, Sequence[int]], list[Trial]]
    measure: Mapping[Profile, Measure]
    published: Published
    tables: Mapping[str, Sequence[Column]]
    figures: Callable[[Sequence[TrialResult], Path, Path], list[tuple[str, Path]]]
    watch: Mapping[Profile, Watch] = field(default_factory=dict)
    derived_rows: Callable[[Sequence[TrialResult]], list[TrialResult]] = no_derived_rows
    stages: int | None = None
    runs: str = ""
    published_only: Published = field(default_factory=dict)
    summary: Callable[[Sequence[Row]], Summary] | None = None
    notes: Sequence[str] = ()
    dataset_notes: Mapping[str, str] = field(default_factory=dict)


def result_rows(results: Sequence[TrialResult], published: Published) -> list[dict[str, Any]]:
    """One row for each system, data set, metric and number of images: mean and spread over seeds."""
    grouped: dict[tuple[Any, ...], list[tuple[TrialResult, Mapping[str, Any]]]] = {}
    for result in results:
        trial = result.trial
        for score in result.scores:
            key = (trial.system, trial.data, trial.note, score["name"], score["n"])
            grouped.setdefault(key, []).append((result, score))
    rows = []
    for (system, data, note, metric, n), found in grouped.items():
        values = [score["value"] for _, score in found]
        floors = [score["noise_floor"] for _, score in found if score["noise_floor"] is not None]
        rows.append(
            {
                "system": system,
                "data": data,
                "metric": metric,
                "value": statistics.fmean(values),
                "spread": statistics.stdev(values) if len(values) > 1 else None,
                "noise_floor": statistics.fmean(floors) if floors else None,
                "n": n,
                "seeds": len(values),
                "of_seeds": [result.trial.seed for result, _ in found],
                "paper": published.get(
                    (system, data, metric, note), published.get((system, data, metric))
                ),
                "minutes": statistics.fmean(result.minutes for result, _ in found),
                "recipe": found[0][0].trial.command,
                "note": note,
            }
        )
    return rows


def published_rows(published_only: Published, data: Collection[str]) -> list[dict[str, Any]]:
    """Rows of systems that are not trained here, on some data sets: published numbers only.

    >>> (row,) = published_rows({("iwae", "mnist", "log-likelihood", "2 layers"): -85.33}, {"mnist"})
    >>> row["value"], row["paper"], row["note"]
    (None, -85.33, '2 layers, published only')
    """
    return [
        {
            "system": system,
            "data": of,
            "metric": metric,
            "value": None,
            "spread": None,
            "noise_floor": None,
            "n": 0,
            "seeds": 0,
            "of_seeds": [],
            "paper": number,
            "minutes": 0.0,
            "recipe": "none: published only",
            "note": f"{note}, published only",
        }
        for (system, of, metric, note), number in published_only.items()
        if of in data
    ]


def write_results(
    study: Study, results: Sequence[TrialResult], path: Path, *, command: str, planned: int
) -> dict[str, Any]:
    """Write `<study>.json`: rows, command, versions and machine; returns its content.

    Trainings may be older than the commit that writes; the record of a trial has the commit of its own.
    """
    content = {
        "study": study.name,
        "command": command,
        "versions": versions(),
        "written_at_commit": commit(),
        "machine": {
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "core_minutes": round(sum(result.minutes for result in results), 1),
        },
        "trials": {"finished": len(results), "planned": planned},
        "rows": [
            *result_rows([*results, *study.derived_rows(results)], study.published),
            *published_rows(study.published_only, {result.trial.data for result in results}),
        ],
    }
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")
    return content
