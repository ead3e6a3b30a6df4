"""Learning curves: scores of a run while it trains, time and memory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.score import Score
from disentwine.errors import StudyError
from disentwine.runs.checkpoint import canonical_json
from disentwine.runs.storage import write_atomically
from disentwine.training.callbacks import Callback

LEARNING_CURVE = "learning_curve.json"
NEARLY = 0.8
"""A training that ends after this share of a time limit counts for it, with its last scores."""

FEWEST_STEPS = 10
"""Fewest steps for a cost: the first step is many times slower than the others."""

Watch = Callable[[Model, Dataset], Mapping[str, Any]]
"""Measures JSON values at every checkpoint; a function of a module."""

LearningCurve = Sequence[Mapping[str, Any]]
"""Records of step, seconds of one core, peak megabytes, and scores by name."""


class RecordLearningCurve(Callback):
    """Writes the learning curve of a run into its folder.

    Seconds are processor time, without the time that the measuring takes. A resumed run continues
    from its last checkpoint.

    Arguments:
        path: the run folder.
        watch: what to measure.
    """

    def __init__(self, path: Path, *, watch: Watch) -> None:
        self.path, self.watch = path, watch

    def on_begin(self, model: Model, dataset: Dataset) -> None:
        self.dataset, self.since = dataset, time.process_time()

    def on_save(self, model: Model, step: int) -> None:
        spent = time.process_time() - self.since
        before = [r for r in read_learning_curve(self.path) if r["step"] < step]
        record = {
            "step": step,
            "seconds": spent + (before[-1]["seconds"] if before else 0.0),
            "megabytes": peak_megabytes(),
            "scores": dict(self.watch(model, self.dataset)),
        }
        write_atomically(self.path / LEARNING_CURVE, canonical_json([*before, record]))
        self.since = time.process_time()


def read_learning_curve(path: Path) -> LearningCurve:
    """The learning curve of a run; empty where none was recorded."""
    file = path / LEARNING_CURVE
    try:
        records: LearningCurve = json.loads(file.read_bytes()) if file.is_file() else []
    except ValueError as error:
        raise StudyError(
            f"{file} is no learning curve: it is not JSON ({error}). Put an intact copy there, or "
            f"delete it to do without."
        ) from error
    return records


def peak_megabytes() -> float | None:
    """Peak memory of this process; none where the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def costs(learning_curve: LearningCurve) -> list[Score]:
    """Seconds per 1,000 updates, and peak megabytes, of a run.

    >>> first, last = ({"step": s, "seconds": s / 50, "megabytes": 700.0} for s in (0, 500))
    >>> [(score.name, score.value) for score in costs([first, last])]
    [('seconds-per-1000-steps', 20.0), ('peak-megabytes', 700.0)]
    >>> costs([first, {**last, "step": 1}])  # of a model that is not trained
    []
    """
    steps = learning_curve[-1]["step"] - learning_curve[0]["step"] if learning_curve else 0
    if steps < FEWEST_STEPS:
        return []
    first, last = learning_curve[0], learning_curve[-1]
    seconds = 1000 * (last["seconds"] - first["seconds"]) / steps
    scores = [Score("seconds-per-1000-steps", seconds, n=steps)]
    if last["megabytes"] is not None:
        scores.append(Score("peak-megabytes", last["megabytes"], n=1))
    return scores


def scores_after(
    learning_curve: LearningCurve, minutes: Sequence[int], names: Sequence[str]
) -> list[Score]:
    """Scores of a run after given minutes of one core, as far as it took (nearly) that long.

    >>> learning_curve = [{"step": i, "seconds": 50.0 * i, "scores": {"sap": i / 10}} for i in range(4)]
    >>> [(s.name, s.value) for s in scores_after(learning_curve, [1, 2, 5], ["sap"])]
    [('sap-after-1-minutes', 0.1), ('sap-after-2-minutes', 0.2)]
    """
    found = []
    for limit in minutes:
        if learning_curve and learning_curve[-1]["seconds"] >= NEARLY * 60 * limit:
            record = [r for r in learning_curve if r["seconds"] <= 60 * limit][-1]
            found += [
                Score(
                    f"{name}-after-{limit}-minutes",
                    record["scores"][name],
                    n=1,
                    details={"step": record["step"]},
                )
                for name in names
                if name in record["scores"]
            ]
    return found
