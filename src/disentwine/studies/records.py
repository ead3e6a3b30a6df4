"""Committed records of trials; reuse of runs of other studies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from disentwine.core.score import Score
from disentwine.errors import DisentwineError, StudyError, UsageError
from disentwine.runs.recipe import Recipe, parse_recipe
from disentwine.runs.run import SCORES, is_run, load_run, recipe_diff
from disentwine.runs.storage import make_folder, storage_errors, write_atomically
from disentwine.runs.upgrade import SCORE_NAMES, new_name
from disentwine.studies.learning_curves import read_learning_curve
from disentwine.studies.trial import Trial, TrialResult

TRIALS = "trials"
"""Name of the folder of records, within that of a study."""

DIGITS = 5
"""Digits of the numbers of a learning curve in a record."""

LONGEST = 50_000
"""Characters of a score's detail in a record; longer details, such as tables of all pixels, are left out."""

IN_A_SCORE = {field.name for field in fields(Score)}


def read_trial(trial: Trial, runs: Path, records: Path | None = None) -> TrialResult | None:
    """The result of a finished trial, from its run folder or else from its record; None if unfinished.

    Arguments:
        trial: the trial.
        runs: the folder of all run folders.
        records: the folder of all records, if there is one.
    """
    found = _of_run(trial.folder(runs))
    if found is None and records is not None:
        found = _read(_file(trial, records), "scores", "minutes", "learning_curve")
        if found is not None:
            _check_recipe(found.get("recipe"), trial, _file(trial, records))
    if found is None:
        return None
    return TrialResult(trial, tuple(found["scores"]), found["minutes"], found["learning_curve"])


def write_records(results: Iterable[TrialResult], runs: Path, records: Path) -> None:
    """Write a record of every trial with scores in its run folder; other records stay unchanged."""
    make_folder(records)
    for trial in (result.trial for result in results):
        found = _of_run(trial.folder(runs))
        if found is not None:
            recipe = yaml.safe_load(trial.read_recipe().to_yaml())
            record = {"recipe": recipe, "seed": trial.seed, **found}
            record["scores"] = [_without_large_details(score) for score in found["scores"]]
            record["learning_curve"] = rounded(found["learning_curve"])
            write_atomically(_file(trial, records), in_lines(record))


def rounded(value: Any) -> Any:
    """A value with all floats rounded to five digits.

    >>> rounded([{"step": 123456, "scores": {"unit-kl": [0.00815016860049218]}}])
    [{'step': 123456, 'scores': {'unit-kl': [0.0081502]}}]
    """
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def in_lines(record: Mapping[str, Any]) -> str:
    """JSON with a line for each key, each score and each record of a learning curve.

    >>> print(in_lines({"seed": 0, "scores": [{"n": 1}, {"n": 2}], "learning_curve": []}), end="")
    {
     "seed": 0,
     "scores": [
      {"n": 1},
      {"n": 2}
     ],
     "learning_curve": []
    }
    """

    def text(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(_json, value)) + "\n ]"
        return _json(value)

    lines = [f" {_json(key)}: {text(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _without_large_details(score: Mapping[str, Any]) -> dict[str, Any]:
    details = {k: v for k, v in score["details"].items() if len(_json(v)) <= LONGEST}
    return {**score, "details": details}


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _file(trial: Trial, records: Path) -> Path:
    return records / f"{trial.folder(records).name}.json"


def _of_run(folder: Path) -> dict[str, Any] | None:
    """Scores and learning curve of a run folder, with the keys of a record."""
    measured = _read(folder / SCORES, "scores", "minutes")
    return None if measured is None else {**measured, "learning_curve": read_learning_curve(folder)}


def _check_recipe(recorded: Any, trial: Trial, path: Path) -> None:
    """Refuse a record of another recipe: the digest in its name does not include changed defaults."""
    try:
        recipe = parse_recipe(recorded, source=str(path))
    except (UsageError, AttributeError) as error:
        raise StudyError(f"the recipe in {path} cannot be read: {error}") from error
    if changed := recipe_diff(asdict(recipe), asdict(trial.read_recipe())):
        raise StudyError(
            f"{path} was measured with another recipe than the study has now: "
            f"{'; '.join(changed)}. Delete it to train again, or restore the value it was made with."
        )


def _read(path: Path, *keys: str) -> dict[str, Any] | None:
    """The content of a file of scores; None if there is no file."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        wrong = _problem(content, keys)
    except ValueError as error:
        wrong = f"it is not JSON ({error})"
    if wrong:
        raise StudyError(
            f"{path} has no valid scores of a trial: {wrong}. "
            f"Restore an intact copy, or delete it to run the trial again."
        )
    scores = [{**s, "name": new_name(s["name"], SCORE_NAMES)} for s in content["scores"]]
    return {**content, "scores": scores}


def _problem(content: Any, keys: Iterable[str]) -> str:
    if not isinstance(content, dict):
        return "it has no keys"
    absent = [key for key in keys if key not in content]
    if absent:
        return f"it has no {', '.join(absent)}"
    scores = content["scores"]
    if not isinstance(scores, list) or not all(
        isinstance(score, dict) and score.keys() >= IN_A_SCORE for score in scores
    ):
        return f"not all of its scores have {', '.join(sorted(IN_A_SCORE))}"
    numbers = [content["minutes"], *(score["value"] for score in scores)]
    if not all(isinstance(number, int | float) for number in numbers):
        return "its minutes or the values of its scores are not numbers"
    if not isinstance(content.get("learning_curve", []), list):
        return "its learning_curve is not a list"
    return ""


def copied_from_elsewhere(recipe: Recipe, folder: Path) -> Path | None:
    """Copy a finished run of the same recipe from another study into `folder`; None if there is none.

    The copy has a hidden name, which no other process takes for a run, until it is complete.
    """
    half = folder.with_name(f".{folder.name}")
    shutil.rmtree(half, ignore_errors=True)  # of an interrupted copy
    digest = folder.name.rpartition("-")[2]
    for other in sorted(folder.parent.parent.glob(f"*/*-{digest}")):
        if not other.name.startswith(".") and _is_whole(other, recipe):
            with storage_errors(folder):
                try:
                    shutil.copytree(other, half, ignore=shutil.ignore_patterns(SCORES, ".*"))
                    return half.rename(folder)
                finally:
                    shutil.rmtree(half, ignore_errors=True)
    return None


def _is_whole(path: Path, recipe: Recipe) -> bool:
    """Whether a folder holds a finished run of the recipe with intact best weights."""
    if not is_run(path):
        return False
    run = load_run(path)
    try:
        if not run.finished or run.recipe != recipe:
            return False
        step, best = run.checkpoint.step, run.checkpoint.state.get("best") or {}
    except DisentwineError:
        return False
    # If the best weights are damaged, the last ones are loaded instead.
    return bool(best.get("step", step) == step)
