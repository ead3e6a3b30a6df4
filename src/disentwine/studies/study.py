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

from disentwine.runs.provenance import commit, versions
from disentwine.runs.storage import write_atomically
from disentwine.studies.learning_curves import Watch
from disentwine.studies.scheduler import Measure
from disentwine.studies.tables import Column
from disentwine.studies.trial import Outcome, Trial

Profile = Literal["smoke", "paper"]

Published = Mapping[tuple[str, ...], float]
"""A paper's numbers by (system, data, metric), or with the note of a row as the fourth, in natural
units."""


def nothing_more(outcomes: Sequence[Outcome]) -> list[Outcome]:
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
        others: numbers that papers have of what is not trained here, by (system, data, metric, note):
            rows of their own, without a value of ours.
        tables: what it shows for each data set, by title.
        figures: draws pictures into a folder from the outcomes and the folder of all runs; returns
            (caption, file) of each.
        watch: what is measured at every checkpoint, if anything.
        more: rows made of other rows, such as the best setting of a system.
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
    figures: Callable[[Sequence[Outcome], Path, Path], list[tuple[str, Path]]]
    watch: Mapping[Profile, Watch] = field(default_factory=dict)
    more: Callable[[Sequence[Outcome]], list[Outcome]] = nothing_more
    stages: int | None = None
    runs: str = ""
    others: Published = field(default_factory=dict)
    notes: Sequence[str] = ()
    dataset_notes: Mapping[str, str] = field(default_factory=dict)


def result_rows(outcomes: Sequence[Outcome], published: Published) -> list[dict[str, Any]]:
    """One row for each system, data set, metric and number of images: mean and spread over seeds."""
    grouped: dict[tuple[Any, ...], list[tuple[Outcome, Mapping[str, Any]]]] = {}
    for outcome in outcomes:
        trial = outcome.trial
        for score in outcome.scores:
            key = (trial.system, trial.data, trial.note, score["name"], score["n"])
            grouped.setdefault(key, []).append((outcome, score))
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
                "of_seeds": [outcome.trial.seed for outcome, _ in found],
                "paper": published.get(
                    (system, data, metric, note), published.get((system, data, metric))
                ),
                "minutes": statistics.fmean(outcome.minutes for outcome, _ in found),
                "recipe": found[0][0].trial.command,
                "note": note,
            }
        )
    return rows


def published_rows(others: Published, data: Collection[str]) -> list[dict[str, Any]]:
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
        for (system, of, metric, note), number in others.items()
        if of in data
    ]


def write_results(
    study: Study, outcomes: Sequence[Outcome], path: Path, *, command: str, planned: int
) -> dict[str, Any]:
    """Write `<study>.json`: what was measured, by which command, with which versions, on what.

    Trainings may be older than the commit that writes: each trial's record keeps its own.
    """
    results = {
        "study": study.name,
        "command": command,
        "versions": versions(),
        "written_at_commit": commit(),
        "machine": {
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "core_minutes": round(sum(outcome.minutes for outcome in outcomes), 1),
        },
        "trials": {"finished": len(outcomes), "planned": planned},
        "rows": [
            *result_rows([*outcomes, *study.more(outcomes)], study.published),
            *published_rows(study.others, {outcome.trial.data for outcome in outcomes}),
        ],
    }
    write_atomically(path, json.dumps(results, indent=1, allow_nan=False).encode() + b"\n")
    return results
