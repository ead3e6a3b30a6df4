"""Many trainings side by side: each in a process and a run folder of its own, none made twice."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disentwine.contracts.score import Score
from disentwine.errors import StudyError
from disentwine.progress import ProgressBar
from disentwine.report.scoring import to_json
from disentwine.training.recipe import Recipe, read_recipe
from disentwine.training.run import Run, is_run, load_run
from disentwine.training.storage import canonical_json, write_atomically
from disentwine.training.train import train_recipe
from disentwine.training.versions import versions

SCORES = "scores.json"


@dataclass(frozen=True)
class Trial:
    """One training of a study.

    Arguments:
        system: the row of the table it belongs to.
        data: the data set of the row.
        seed: of the training.
        recipe: name of a ready recipe.
        overrides: `key=value` for it.
        note: what tells this row from others of the same system and data.
    """

    system: str
    data: str
    seed: int
    recipe: str
    overrides: tuple[str, ...] = ()
    note: str = ""

    @property
    def command(self) -> str:
        """What to give to `disentwine train`; the seed aside, which differs in every trial."""
        return " ".join((self.recipe, *self.overrides))

    def read_recipe(self) -> Recipe:
        """The recipe with every default written out, for one thread."""
        return read_recipe(
            self.recipe, (*self.overrides, "training.threads=1", f"seed={self.seed}")
        )

    def folder(self, runs: Path) -> Path:
        """Where its run is kept: another recipe has another folder."""
        digest = hashlib.sha256(self.read_recipe().to_yaml().encode()).hexdigest()[:8]
        parts = filter(None, (self.data, self.system, self.note, str(self.seed), digest))
        return runs / re.sub(r"[^\w.]+", "-", "-".join(parts))


@dataclass(frozen=True)
class Outcome:
    """What one trial measured.

    Arguments:
        trial: which one.
        scores: (name, value, n and details) of each score, as JSON has them.
        minutes: of training and measuring, on one core.
    """

    trial: Trial
    scores: tuple[Mapping[str, Any], ...]
    minutes: float


Measure = Callable[[Run], Sequence[Score]]
"""What a study measures of a trained run; a function of a module, so that processes can find it."""


def run_trials(
    trials: Sequence[Trial],
    runs: Path,
    *,
    measure: Measure,
    jobs: int,
    label: str,
    progress: bool | None = None,
) -> list[Outcome]:
    """Train and measure every trial, `jobs` at a time, one thread each.

    A finished trial is read, not made again; an interrupted one goes on where it was. When a trial
    fails the others are finished first.

    Arguments:
        trials: what to train.
        runs: the folder of all run folders.
        measure: what to measure of each.
        jobs: how many processes at once.
        label: of the progress bar.
        progress: show the bar; by default on a terminal only.
    """
    failed: dict[Trial, BaseException] = {}
    outcomes: dict[Trial, Outcome] = {}
    bar = ProgressBar(label, total=len(trials), show=progress)
    with one_thread_each(), _pool(jobs) as pool, bar:
        futures: dict[Future[Outcome], Trial] = {
            pool.submit(make_trial, trial, runs, measure): trial for trial in trials
        }
        for future in as_completed(futures):
            trial, error = futures[future], future.exception()
            if error is None:
                outcomes[trial] = future.result()
            else:
                failed[trial] = error
            bar.advance()
    if failed:
        reasons = [
            f"{trial.folder(runs).name}: {type(error).__name__}: {error}"
            for trial, error in failed.items()
        ]
        raise StudyError(
            f"{len(failed)} of {len(trials)} trainings failed, the others are kept in {runs}:\n  "
            + "\n  ".join(reasons)
        )
    return [outcomes[trial] for trial in trials]


def make_trial(trial: Trial, runs: Path, measure: Measure) -> Outcome:
    """Train and measure one trial in this process, or read what was measured before."""
    folder = trial.folder(runs)
    kept = folder / SCORES
    if kept.is_file():
        record = json.loads(kept.read_bytes())
        return Outcome(trial, tuple(record["scores"]), record["minutes"])
    done = is_run(folder) and load_run(folder).finished
    run = load_run(folder) if done else train_recipe(trial.read_recipe(), folder, progress=False)
    start = time.perf_counter()
    scores = [to_json(score) for score in measure(run)]
    seconds = run.status.get("seconds", 0.0) + time.perf_counter() - start
    record = {"scores": scores, "minutes": seconds / 60, "versions": versions()}
    write_atomically(kept, canonical_json(record))
    return Outcome(trial, tuple(scores), record["minutes"])


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started inside compute with one thread: several with more would fight."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
