"""Many trainings side by side: each in a run folder of its own, none made twice."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from disentwine.contracts.dataset import Dataset
from disentwine.contracts.score import Score
from disentwine.errors import DataError, StudyError
from disentwine.progress import ProgressBar
from disentwine.report.kept import SCORES
from disentwine.report.scoring import to_json
from disentwine.studies.courses import Watch, read_course, recorded
from disentwine.studies.workers import end_if_stopped, workers
from disentwine.training.recipe import Recipe, read_recipe
from disentwine.training.run import Run, is_run, load_run
from disentwine.training.storage import canonical_json, make_folder, write_atomically
from disentwine.training.train import train_recipe
from disentwine.training.versions import commit, versions


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
        stage: trials of earlier stages are made first; the most telling ones belong there.
        baseline: where nothing is trained, the representation to measure (see `models.baselines`)
            on the recipe's data.
        after: the trial with whose weights it begins, which is made before.
    """

    system: str
    data: str
    seed: int
    recipe: str
    overrides: tuple[str, ...] = ()
    note: str = ""
    stage: int = 1
    baseline: str = ""
    after: Trial | None = None

    @property
    def command(self) -> str:
        """What to give to `disentwine train`; the seed aside, which differs in every trial."""
        made = " ".join((self.recipe, *self.overrides, *self._start(Path())))
        return f"none: {self.baseline} of the data of {made}" if self.baseline else made

    def read_recipe(self, runs: Path = Path()) -> Recipe:
        """The recipe with every default written out, for one thread; `runs` is where it may begin."""
        words = (*self.overrides, *self._start(runs), "training.threads=1", f"seed={self.seed}")
        return read_recipe(self.recipe, words)

    def has_data(self) -> bool:
        """Whether its images are at hand."""
        try:
            self.read_recipe().build_dataset()
        except DataError:
            return False
        return True

    def folder(self, runs: Path) -> Path:
        """Where its run is kept: another recipe has another folder."""
        digest = hashlib.sha256(self.read_recipe().to_yaml().encode()).hexdigest()[:8]
        parts = filter(None, (self.data, self.system, self.note, str(self.seed), digest))
        return runs / re.sub(r"[^\w.]+", "-", "-".join(parts))

    def _start(self, runs: Path) -> tuple[str, ...]:
        return () if self.after is None else (f"training.start={self.after.folder(runs)}",)


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


@dataclass(frozen=True)
class Baseline:
    """What is measured where nothing is trained.

    Arguments:
        name: of the representation, see `models.baselines`.
        recipe: its data and its seed count.
    """

    name: str
    recipe: Recipe

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the recipe."""
        return self.recipe.build_dataset()


Measure = Callable[[Any], Sequence[Score]]
"""What a study measures of a trained `Run`, or of a `Baseline` where it has any; a function of a
module, so that processes can find it."""


def run_trials(
    trials: Sequence[Trial],
    runs: Path,
    *,
    measure: Measure,
    jobs: int,
    label: str,
    watch: Watch | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    progress: bool | None = None,
) -> list[Outcome]:
    """Train and measure every trial, `jobs` at a time, one thread each.

    A finished trial is read, not made again; an interrupted one goes on where it was; one that
    another study in the same folder has trained is only measured. When a trial fails the others are
    finished first.

    Arguments:
        trials: what to train, first things first.
        runs: the folder of all run folders.
        measure: what to measure of each.
        jobs: how many processes at once.
        label: of the progress bar.
        watch: what to measure at every checkpoint; then each trial has a process of its own, so that
            its memory is known.
        on_trial: called with each trial that ended, well or not.
        progress: show the bar; by default on a terminal only.
    """
    failed: dict[Trial, BaseException] = {}
    outcomes: dict[Trial, Outcome] = {}
    bar = ProgressBar(label, total=len(trials), show=progress)
    waiting = list(trials)
    running: dict[Future[Outcome], Trial] = {}
    with workers(jobs, reused=watch is None) as pool, bar:
        while waiting or running:
            # One that begins with the weights of another comes first as soon as they are there.
            unmade = {*waiting, *running.values()}
            ready = [trial for trial in waiting if trial.after not in unmade]
            for trial in ready[: jobs - len(running)]:
                waiting.remove(trial)
                running[_submit(pool, make_trial, trial, runs, measure, watch)] = trial
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                trial, error = running.pop(future), future.exception()
                if error is None:
                    outcomes[trial] = future.result()
                else:
                    failed[trial] = error
                bar.advance()
                if on_trial is not None:
                    on_trial(trial)
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


def _submit(pool: Executor, make: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
    """A task of the pool; where a killed worker broke it, one that fails as those before it did."""
    try:
        return pool.submit(make, *arguments)
    except BrokenProcessPool as error:
        broken: Future[Outcome] = Future()
        broken.set_exception(error)
        return broken


def make_trial(trial: Trial, runs: Path, measure: Measure, watch: Watch | None = None) -> Outcome:
    """Train and measure one trial in this process, or read what was measured before."""
    end_if_stopped()
    known = read_trial(trial, runs)
    if known is not None:
        return known
    subject = _subject(trial, runs, watch)
    start = time.process_time()
    scores = [to_json(score) for score in measure(subject)]
    minutes = (_seconds(subject) + time.process_time() - start) / 60
    record = {"scores": scores, "minutes": minutes, "versions": versions(), "commit": commit()}
    write_atomically(make_folder(trial.folder(runs)) / SCORES, canonical_json(record))
    return Outcome(trial, tuple(scores), minutes)


def read_trial(trial: Trial, runs: Path) -> Outcome | None:
    """What a trial measured, if it is finished."""
    kept = trial.folder(runs) / SCORES
    if not kept.is_file():
        return None
    record = json.loads(kept.read_bytes())
    return Outcome(trial, tuple(record["scores"]), record["minutes"])


def _subject(trial: Trial, runs: Path, watch: Watch | None) -> Run | Baseline:
    recipe, folder = trial.read_recipe(runs), trial.folder(runs)
    if trial.baseline:
        return Baseline(trial.baseline, recipe)
    if is_run(folder) and load_run(folder).finished:
        return load_run(folder)
    if watch is None and not folder.exists() and (finished := _finished_elsewhere(recipe, folder)):
        return load_run(finished)
    hook = partial(recorded, watch=watch) if watch is not None else None
    return train_recipe(recipe, folder, progress=False, hook=hook)


def _finished_elsewhere(recipe: Recipe, folder: Path) -> Path | None:
    """A copy, in `folder`, of the run that another study made by the same recipe, if one has."""
    digest = folder.name.rpartition("-")[2]
    for other in sorted(folder.parent.parent.glob(f"*/*-{digest}")):
        if is_run(other) and (run := load_run(other)).finished and run.recipe == recipe:
            half = folder.with_name(f".{folder.name}")
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(other, half, ignore=shutil.ignore_patterns(SCORES))
            return half.rename(folder)
    return None


def _seconds(subject: Run | Baseline) -> float:
    """Of training: of the processor where they were recorded, else by the clock."""
    if isinstance(subject, Baseline):
        return 0.0
    course = read_course(subject.path)
    return float(course[-1]["seconds"] if course else subject.status.get("seconds", 0.0))
