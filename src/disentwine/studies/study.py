"""What a study is: trainings, what is measured of them, and the published numbers beside ours."""

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
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial, TrialResult

Profile = Literal["smoke", "paper"]

Published = Mapping[tuple[str, ...], float]
"""A paper's numbers by (system, data, metric), or with the note of a row as the fourth, in natural
units."""


def no_derived_rows(results: Sequence[TrialResult]) -> list[TrialResult]:
    """No rows beside those of the trials."""
    return []


@dataclass(frozen=True)
class Study:
    """A paper's table, re-run.

    Arguments:
        name: such as "causalvae".
        about: one line.
        trials: what is trained in a profile with these seeds.
        measure: what is measured of each run.
        published: the paper's numbers.
        published_only: numbers that papers have of what is not trained here, by (system, data, metric, note):
            rows of their own, without a value of ours.
        tables: what it shows for each data set, by title.
        figures: draws pictures into a folder from the outcomes and the folder of all runs; returns
            (caption, file) of each.
        watch: what is measured at every checkpoint, if anything.
        derived_rows: rows made of other rows, such as the best setting of a system.
        stages: how many stages are made where nobody asks for more; all when none.
        runs: name of the folders of runs and of records, where studies share trainings; its own name by
            default.
        notes: what a reader of the page must know, a sentence or more each.
        dataset_notes: the same of a data set, said where the page has rows of it.
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
    """Rows of what is not trained here, on some data sets: a paper's number and none of ours.

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
    """Write `<study>.json`: what was measured, by which command, with which versions, on what.

    Trainings may be older than the commit that writes: each trial's record keeps its own.
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
