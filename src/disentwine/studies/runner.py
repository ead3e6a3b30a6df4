"""Run a study: trainings, results, figures, page."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disentwine.errors import Interrupted, StudyError, UsageError, warn
from disentwine.runs.storage import make_folder
from disentwine.studies.records import TRIALS, read_trial, write_records
from disentwine.studies.results_page import figures_on, write_results_page
from disentwine.studies.scheduler import run_trials
from disentwine.studies.study import Profile, Study, write_results
from disentwine.studies.tables import Table
from disentwine.studies.trial import Trial, TrialResult

FOLDERS: dict[Profile, Path] = {"paper": Path("results"), "smoke": Path("runs/smoke")}
"""Default folders of results; a smoke test does not touch the committed ones."""


@dataclass(frozen=True)
class Finished:
    """Files of a study.

    Arguments:
        results: the file of all rows.
        page: the page of tables and figures.
        tables: the tables of the page.
        minutes: duration of this session.
    """

    results: Path
    page: Path
    tables: list[Table]
    minutes: float


def run_study(
    study: Study,
    *,
    profile: Profile = "paper",
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int = 2,
    out: Path | None = None,
    stages: int | None = None,
    train: bool = True,
    progress: bool | None = None,
) -> Finished:
    """Train and measure the trials of a study, and write results after every stage.

    Finished trials of earlier sessions are reused, interrupted ones are resumed. If the study is
    stopped, results of the finished trials are written, with a record of each. A trial with a record is
    not trained again even if its run is gone; delete both to train it again. Existing results of more
    trainings, or of other seeds, are not replaced: the new ones are written to `results` among the run
    folders. Without training and without any finished trial, the page is written again from the rows
    of `<study>.json`.

    Arguments:
        study: one of `STUDIES`.
        profile: "paper" for the published setting, "smoke" for a test with a few updates.
        seeds: of the trainings.
        jobs: number of parallel trainings, one thread each.
        out: folder of `<study>.json`, `<study>.md`, `<study>/*.png` and `<study>/trials/*.json`; run
            folders are then in its subfolder `runs`.
        stages: number of stages to run; by default that of the study.
        train: False to only write results of finished trials.
        progress: show a progress bar; by default on a terminal only.
    """
    start = time.perf_counter()
    twice = [str(seed) for seed, times in Counter(seeds).items() if times > 1]
    if twice or not seeds:
        what = f"{', '.join(twice)} more than once" if twice else "none"
        raise UsageError(f"seeds: give each once, such as 0 1 2; got {what}")
    planned = study.trials(profile, seeds)
    most = max(trial.stage for trial in planned)
    if profile == "paper" and stages is not None and stages > most:
        raise UsageError(f"stages: the study {study.name} has {most}, got {stages}")
    folder = make_folder(out or FOLDERS[profile])
    all_runs = folder / "runs" if out or profile == "smoke" else Path("runs")
    runs, records = make_folder(all_runs / (study.runs or study.name)), records_of(study, folder)
    last = stages or study.stages
    trials = [trial for trial in planned if last is None or trial.stage <= last]
    trials.sort(key=lambda trial: trial.stage)
    left = Counter(trial.stage for trial in trials)
    before = folder / f"{study.name}.json"
    trainings_before, seeds_before = trials_in(before) if profile == "paper" else (0, set())
    command = (
        f"disentwine study {study.name} --profile {profile} --seeds {' '.join(map(str, seeds))}"
    )
    if stages is not None:
        command += f" --stages {stages}"

    def finished() -> list[TrialResult]:
        found = [read_trial(trial, runs, records) for trial in trials]
        return [result for result in found if result is not None]

    def write() -> Finished:
        results = finished()
        if not results and not train and before.is_file():
            content = json.loads(before.read_bytes())
            page = before.with_suffix(".md")
            tables = write_results_page(
                study, content, figures_on(page), page, smoke=profile == "smoke"
            )
            return Finished(before, page, tables, (time.perf_counter() - start) / 60)
        if not results:
            raise StudyError(
                f"no training whose data are available (see DISENTWINE_DATA) is finished "
                f"in {runs} or recorded in {records}; without --no-train they are trained"
            )
        write_records(results, runs, records)
        target = folder
        if len(results) < trainings_before or not seeds_before <= {
            result.trial.seed for result in results
        }:
            target = make_folder(all_runs / "results")
            warn(
                f"{before} has results of {trainings_before} trainings ({command_in(before)}) and is not "
                f"replaced; results of the {len(results)} trainings requested now that are finished and "
                f"whose data are available (see DISENTWINE_DATA) are in {target}"
            )
        path, page, tables = write_study(
            study,
            results,
            runs,
            target,
            command=command,
            planned=trials,
            smoke=profile == "smoke",
        )
        return Finished(path, page, tables, (time.perf_counter() - start) / 60)

    def on_trial(trial: Trial) -> None:
        left[trial.stage] -= 1
        if left[trial.stage] == 0 and left.total() > 0:
            try:
                write()
            except Interrupted:
                raise
            except Exception as error:  # training goes on; the last write reports it
                warn(f"results of stage {trial.stage} were not written: {error}")

    if train:
        try:
            run_trials(
                trials,
                runs,
                measure=study.measure[profile],
                jobs=jobs,
                label=study.name,
                watch=study.watch.get(profile),
                records=records,
                on_trial=on_trial,
                progress=progress,
            )
        except BaseException as error:
            done = finished()
            if done:
                write()
            if isinstance(error, KeyboardInterrupt | Interrupted):
                raise interrupted(error, len(done), len(trials)) from None
            raise
    return write()


def interrupted(error: BaseException, done: int, planned: int) -> Interrupted:
    """The interruption with the progress of the study; Ctrl-C becomes an error that the command prints."""
    code = error.exit_code if isinstance(error, Interrupted) else 128 + signal.SIGINT
    return Interrupted(
        f"stopped: {done} of {planned} trainings are finished; run the same command to resume",
        signal_number=code - 128,
    )


def trials_in(path: Path) -> tuple[int, set[int]]:
    """Number of trainings and seeds in a file of results; none if it is absent or cannot be read."""
    try:
        content = json.loads(path.read_bytes())
        return (
            int(content["trials"]["finished"]),
            {int(seed) for row in content["rows"] for seed in row["of_seeds"]},
        )
    except (OSError, ValueError, KeyError, TypeError):
        return 0, set()


def command_in(path: Path) -> str:
    """The command that wrote a file of results."""
    try:
        return str(json.loads(path.read_bytes())["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return "by an unknown command"


def records_of(study: Study, folder: Path) -> Path:
    """Folder of the records of its trials; studies that share runs share it."""
    return folder / (study.runs or study.name) / TRIALS


def write_study(
    study: Study,
    results: Sequence[TrialResult],
    runs: Path,
    folder: Path,
    *,
    command: str,
    planned: Sequence[Trial],
    smoke: bool,
) -> tuple[Path, Path, list[Table]]:
    """Write results, figures and page; returns the files of results and page, and the tables.

    Arguments:
        study: of the results.
        results: of the finished trials.
        runs: the folder of all run folders.
        folder: where to write.
        command: that reproduces the results.
        planned: all trials of the study.
        smoke: whether this is a smoke test.
    """
    figure_files = study.figures(results, runs, make_folder(folder / study.name))
    path, page = folder / f"{study.name}.json", folder / f"{study.name}.md"
    content = write_results(study, results, path, command=command, planned=len(planned))
    finished = {result.trial for result in results}
    left = Counter(trial.title for trial in planned if trial not in finished)
    missing = ""
    if left:
        names = ", ".join(f"{title} x {n}" if n > 1 else title for title, n in left.items())
        missing = f"{len(finished)} of {len(planned)} trainings are finished; missing: {names}."
    tables = write_results_page(study, content, figure_files, page, missing=missing, smoke=smoke)
    return path, page, tables
