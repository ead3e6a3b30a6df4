"""Running a study: its trainings, its results, its pictures and its page."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disentwine.errors import Interrupted, StudyError, UsageError, warn
from disentwine.runs.storage import make_folder, write_atomically
from disentwine.studies.records import TRIALS, read_trial, write_records
from disentwine.studies.scheduler import run_trials
from disentwine.studies.study import Profile, Study, write_results
from disentwine.studies.tables import Table, study_tables, to_markdown
from disentwine.studies.trial import Trial, TrialResult

FOLDERS: dict[Profile, Path] = {"paper": Path("results"), "smoke": Path("runs/smoke")}
"""Where results go when no folder is named; a smoke test leaves the published ones alone."""

SMOKE_NOTE = (
    "**A quick look that all works.** Nothing here was trained for more than some updates: its numbers and "
    "pictures say nothing of the systems."
)


@dataclass(frozen=True)
class Finished:
    """Arguments:
    results: the file of all rows.
    page: tables and pictures as Markdown.
    tables: the same tables.
    minutes: of this session.
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
    """Train and measure all that a study compares, and write its results after every stage.

    What was trained in an earlier session is used again, what was interrupted goes on. Whatever
    stops it, results are written of what is complete, with a record of each trial; what has a record
    is not trained even where its run is gone: delete both to train it again. Results that tell of
    more trainings than are finished here, or of other seeds, are left alone, and the new ones written in
    `results` among the run folders.

    Arguments:
        study: one of `STUDIES`.
        profile: "paper" for the published setting, "smoke" for a quick look that all works.
        seeds: of the trainings.
        jobs: trainings at a time, one thread each.
        out: folder of `<study>.json`, `<study>.md`, `<study>/*.png` and `<study>/trials/*.json`; run
            folders are kept in `runs` beside it when it is given.
        stages: how many to make; as many as the study says by default.
        train: otherwise only write results of what earlier sessions finished.
        progress: show the bar; by default on a terminal only.
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
    kept = folder / "runs" if out or profile == "smoke" else Path("runs")
    runs, records = make_folder(kept / (study.runs or study.name)), records_of(study, folder)
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
            target = make_folder(kept / "results")
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
            notes=[SMOKE_NOTE] if profile == "smoke" else study.notes,
        )
        return Finished(path, page, tables, (time.perf_counter() - start) / 60)

    def on_trial(trial: Trial) -> None:
        left[trial.stage] -= 1
        if left[trial.stage] == 0 and left.total() > 0:
            try:
                write()
            except Interrupted:
                raise
            except Exception as error:  # no reason to stop training; the last time it is told
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
    """The same with how far the study is; Ctrl-C becomes an error that the command prints."""
    code = error.exit_code if isinstance(error, Interrupted) else 128 + signal.SIGINT
    return Interrupted(
        f"stopped: {done} of {planned} trainings are finished; run the same command to go on",
        signal_number=code - 128,
    )


def trials_in(path: Path) -> tuple[int, set[int]]:
    """How many trainings a file of results tells of, and of which seeds; none where it is absent or
    says nothing of it."""
    try:
        content = json.loads(path.read_bytes())
        return (
            int(content["trials"]["finished"]),
            {int(seed) for row in content["rows"] for seed in row["of_seeds"]},
        )
    except (OSError, ValueError, KeyError, TypeError):
        return 0, set()


def command_in(path: Path) -> str:
    """The command that a file of results says it was made by."""
    try:
        return str(json.loads(path.read_bytes())["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return "by a command it does not name"


def records_of(study: Study, folder: Path) -> Path:
    """Where the records of its trials are; studies that share runs share them."""
    return folder / (study.runs or study.name) / TRIALS


def write_study(
    study: Study,
    results: Sequence[TrialResult],
    runs: Path,
    folder: Path,
    *,
    command: str,
    planned: Sequence[Trial],
    notes: Sequence[str],
) -> tuple[Path, Path, list[Table]]:
    """Write results, pictures and page; returns the files of results and page, and the tables.

    Arguments:
        study: whose they are.
        outcomes: of the trials that are finished.
        runs: the folder of all run folders.
        folder: where to write.
        command: that makes all this again.
        planned: all trials that there are to be.
        notes: what to say before the tables.
    """
    figure_files = study.figures(results, runs, make_folder(folder / study.name))
    path, page = folder / f"{study.name}.json", folder / f"{study.name}.md"
    content = write_results(study, results, path, command=command, planned=len(planned))
    tables = study_tables(content["rows"], study.tables)
    shown = {row["data"] for row in content["rows"] if row["seeds"]}
    cores = content["machine"]["core_minutes"]
    made = {result.trial for result in results}
    missing = Counter(trial.title for trial in planned if trial not in made)
    share = ""
    if missing:
        names = ", ".join(f"{title} x {n}" if n > 1 else title for title, n in missing.items())
        share = f" {len(made)} of {len(planned)} trainings are finished; missing: {names}."
    minutes = max(1, round(cores))
    parts = [
        f"# {study.about}",
        f"Made by `{command}`; its trainings took {minutes} minute{'s' * (minutes > 1)}, added up.{share} "
        "Published numbers stand in square brackets, ± is the spread over seeds. What was trained "
        "how is in the JSON file beside.",
        *notes,
        *(text for data, text in study.dataset_notes.items() if data in shown),
    ]
    for table in tables:
        parts += [f"## {table.title}", to_markdown(table)]
    parts += [
        f"## {caption}\n\n![{caption}]({file.relative_to(folder)})"
        for caption, file in figure_files
    ]
    write_atomically(page, ("\n\n".join(parts) + "\n").encode())
    return path, page, tables
