"""Parallel trials in processes, each in its own run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from disentwine.core.score import Score, to_json
from disentwine.errors import Interrupted, StudyError
from disentwine.progress import ProgressBar
from disentwine.runs.checkpoint import canonical_json, commit, versions
from disentwine.runs.fit import train_recipe
from disentwine.runs.run import SCORES, Run, load_run
from disentwine.runs.storage import make_folder, write_atomically
from disentwine.studies.learning_curves import RecordLearningCurve, Watch, read_learning_curve
from disentwine.studies.records import copied_from_elsewhere, read_trial
from disentwine.studies.trial import Baseline, Trial, TrialResult
from disentwine.studies.workers import end_if_stopped, end_worker, workers

Measure = Callable[[Any], Sequence[Score]]
"""Scores of a trained `Run` or of a `Baseline`; a function of a module, so that processes can import it."""

KILLED = "its process was killed while no other training was running; it may need more memory"


def run_trials(
    trials: Sequence[Trial],
    runs: Path,
    *,
    measure: Measure,
    jobs: int,
    label: str,
    watch: Watch | None = None,
    records: Path | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    progress: bool | None = None,
) -> list[TrialResult]:
    """Train and measure every trial, `jobs` at a time, one thread each.

    Finished trials are read, interrupted ones are resumed. A trial that another study in the same
    folder has trained is only measured. A trial with only a record left is trained again if another
    starts from its weights. If a trial fails or its process is killed, the others are finished first.

    Arguments:
        trials: to run, in this order.
        runs: the folder of all run folders.
        measure: scores of a run.
        jobs: number of parallel processes.
        label: of the progress bar.
        watch: scores at every checkpoint; each trial then has its own process, so that its memory is
            measured.
        records: the folder of all records, if there is one.
        on_trial: called with each trial that ended, also with failed ones.
        progress: show a progress bar; by default on a terminal only.
    """
    failed: dict[Trial, BaseException] = {}
    results: dict[Trial, TrialResult] = {}
    initialising = _initialising(trials, runs, records)
    waiting, suspects = list(trials), set[Trial]()
    bar = ProgressBar(label, total=len(trials), show=progress)

    def begin(pool: Executor, trial: Trial) -> Future[TrialResult]:
        weights = trial in initialising
        known = None if weights else read_trial(trial, runs, records)
        if known is not None:
            return _done(known)
        return pool.submit(make_trial, trial, runs, measure, watch, records, weights)

    def end(trial: Trial, error: BaseException | None) -> None:
        if error is not None:
            failed[trial] = error
        bar.advance()
        if on_trial is not None:
            on_trial(trial)

    def run_waiting(pool: Executor) -> list[Trial]:
        """Run waiting trials; returns those that were running when a process died and broke the pool."""
        running: dict[Future[TrialResult], Trial] = {}
        try:
            while waiting or running:
                for trial in _next(waiting, running.values(), suspects, jobs):
                    running[begin(pool, trial)] = trial
                    waiting.remove(trial)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        raise error
                    trial = running.pop(future)
                    if error is None:
                        results[trial] = future.result()
                    end(trial, error)
        except BrokenProcessPool:
            return list(running.values())
        return []

    with bar:
        while waiting:
            with workers(jobs, reused=watch is None) as pool:
                lost = run_waiting(pool)
            if len(lost) == 1:
                end(lost[0], StudyError(KILLED))
            else:
                suspects.update(lost)
                waiting[:0] = lost
    if failed:
        reasons = [
            f"{trial.folder(runs).name}: {type(error).__name__}: {error}"
            for trial, error in failed.items()
        ]
        raise StudyError(
            f"{len(failed)} of {len(trials)} trainings failed, the others are kept in {runs}:\n  "
            + "\n  ".join(reasons)
        )
    return [results[trial] for trial in trials]


def _next(
    waiting: Sequence[Trial], running: Collection[Trial], suspects: Set[Trial], jobs: int
) -> list[Trial]:
    """The trials to begin now.

    A trial that starts from the weights of another begins once that is finished. Trials that were
    running when a process died run alone, to find the one that caused it.
    """
    unmade = {*waiting, *running}
    ready = [trial for trial in waiting if trial.after not in unmade]
    alone = [trial for trial in ready if trial in suspects]
    if alone or not suspects.isdisjoint(running):
        return [] if running else alone[:1]
    return ready[: jobs - len(running)]


def _initialising(trials: Sequence[Trial], runs: Path, records: Path | None) -> set[Trial]:
    """Trials whose weights are needed to start trials that are not yet trained."""
    found = set()
    for trial in trials:
        if read_trial(trial, runs, records) is None:
            while trial.after is not None and trial.finished_run(runs) is None:
                trial = trial.after
                found.add(trial)
    return found


def _done(known: TrialResult) -> Future[TrialResult]:
    """A completed task, without the seconds that a process needs to start."""
    done: Future[TrialResult] = Future()
    done.set_result(known)
    return done


def make_trial(
    trial: Trial,
    runs: Path,
    measure: Measure,
    watch: Watch | None = None,
    records: Path | None = None,
    weights: bool = False,
) -> TrialResult:
    """Train and measure one trial in this process, or read its earlier result.

    Arguments:
        trial: the trial.
        runs, measure, watch, records: as for `run_trials`.
        weights: train it also if it has a record but its run is gone.
    """
    end_if_stopped()
    try:
        return _made(trial, runs, measure, watch, records, weights)
    except Interrupted:
        end_worker()
        raise


def _made(
    trial: Trial,
    runs: Path,
    measure: Measure,
    watch: Watch | None,
    records: Path | None,
    weights: bool,
) -> TrialResult:
    known = read_trial(trial, runs, records)
    if known is not None:
        if weights:
            _train_or_load(trial, runs, watch)
        return known
    measured, folder = _train_or_load(trial, runs, watch), trial.folder(runs)
    start = time.process_time()
    scores = [to_json(score) for score in measure(measured)]
    minutes = (_seconds(measured) + time.process_time() - start) / 60
    record = {"scores": scores, "minutes": minutes, "versions": versions(), "commit": commit()}
    write_atomically(make_folder(folder) / SCORES, canonical_json(record))
    return TrialResult(trial, tuple(scores), minutes, read_learning_curve(folder))


def _train_or_load(trial: Trial, runs: Path, watch: Watch | None) -> Run | Baseline:
    recipe, folder = trial.read_recipe(runs), trial.folder(runs)
    if trial.baseline:
        return Baseline(trial.baseline, recipe)
    if (run := trial.finished_run(runs)) is not None:
        return run
    if (
        watch is None
        and not folder.exists()
        and (finished := copied_from_elsewhere(recipe, folder))
    ):
        return load_run(finished)
    callbacks = [] if watch is None else [RecordLearningCurve(folder, watch=watch)]
    return train_recipe(recipe, folder, progress=False, callbacks=callbacks)


def _seconds(measured: Run | Baseline) -> float:
    """Seconds of training: processor time if it was recorded, else wall-clock time."""
    if isinstance(measured, Baseline):
        return 0.0
    learning_curve = read_learning_curve(measured.path)
    return float(
        learning_curve[-1]["seconds"] if learning_curve else measured.status.get("seconds", 0.0)
    )
