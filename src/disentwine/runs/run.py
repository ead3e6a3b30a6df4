"""Run folders: opened for reading, locked for training; their scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from disentwine.core.dataset import Dataset
from disentwine.core.model import Model
from disentwine.core.score import Score, to_json
from disentwine.errors import CheckpointError, StorageError, UsageError, warn
from disentwine.runs.checkpoint import (
    WEIGHTS,
    canonical_json,
    checkpoint_path,
    checkpoint_steps,
    fingerprint,
    load_best,
    load_newest,
    load_weights,
)
from disentwine.runs.recipe import Recipe, parse_recipe, read_sections
from disentwine.runs.storage import (
    HALF_WRITTEN,
    make_folder,
    read_log,
    storage_errors,
    write_atomically,
)
from disentwine.runs.upgrade import LOGGED, SCORE_NAMES, new_name, rename_all, upgrade_recipe
from disentwine.training.callbacks import Checkpoint

RECIPE, STATUS, METRICS, LOCK = "recipe.yaml", "status.json", "metrics.jsonl", ".lock"


class Run:
    """A run folder, opened by `load_run` or made by `fit(..., out=folder)`.

    Arguments:
        path: the folder.
        which: the checkpoint whose weights `model` has: the best on the validation split, or the
            last.
    """

    def __init__(self, path: str | Path, *, which: Literal["best", "last"] = "best") -> None:
        self.path = Path(path)
        self.which = which
        with reading_errors(self.path):
            known = (self.path / RECIPE).is_file()
        if not known:
            raise UsageError(
                f"{self.path} is not a run folder: it has no {RECIPE}. "
                f"'disentwine runs' lists the runs there are."
            )

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def figures(self) -> Path:
        return make_folder(self.path / "figures")

    @cached_property
    def recipe(self) -> Recipe:
        sections, source = read_sections(self.path / RECIPE), str(self.path / RECIPE)
        try:
            return parse_recipe(sections, source=source)
        except UsageError:  # perhaps of format 1, whose keys have other names today
            return parse_recipe(upgrade_recipe(sections), source=source)

    @property
    def status(self) -> dict[str, Any]:
        """State ("unfinished" or "finished"), step and seconds of training so far."""
        with reading_errors(self.path / STATUS):
            try:
                status = json.loads((self.path / STATUS).read_bytes())
            except (FileNotFoundError, ValueError):
                status = None
        known = isinstance(status, dict) and "state" in status
        return status if known else {"state": "unfinished"}

    @property
    def finished(self) -> bool:
        return bool(self.status["state"] == "finished")

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The records of the metric log."""
        records = read_log(self.path / METRICS)
        return [rename_all(r, LOGGED) if isinstance(r, dict) else r for r in records]

    @cached_property
    def dataset(self) -> Dataset:
        """The data set that the run was trained on; warns where its files have changed."""
        dataset = self.recipe.build_dataset()
        if dataset.editable and checkpoint_steps(self.checkpoints):
            now = fingerprint(dataset)
            if self.checkpoint.state.get("data", now) != now:
                warn(
                    f"the data have changed since {self.path} was trained: test images may be among "
                    f"its training images; restore images and table as they were, or train again"
                )
        return dataset

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The chosen checkpoint, verified; an older one where the newest is damaged."""
        load = load_best if self.which == "best" else load_newest
        checkpoint = load(self.checkpoints)
        if checkpoint is None:
            raise CheckpointError(f"{self.path} has no checkpoint yet: let it train for a while")
        return checkpoint

    @cached_property
    def model(self) -> Model:
        """The trained model, in evaluation mode."""
        model = self.recipe.build_model(self.checkpoint.state["fixed_by_data"])
        where = checkpoint_path(self.checkpoints, self.checkpoint.step) / WEIGHTS
        load_weights(model, self.checkpoint.weights, source=where)
        return model.eval()

    def write_status(self, **status: Any) -> None:
        write_atomically(self.path / STATUS, canonical_json(status))

    @property
    def running(self) -> bool:
        """Whether a process trains it now."""
        if not (self.path / LOCK).exists():
            return False
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:  # a folder that cannot be written: a training there could write
            return False
        lock.release()
        return False

    def __repr__(self) -> str:
        status = self.status
        return (
            f"Run({self.path}: {self.recipe.model['name']} on {self.recipe.data['name']}, "
            f"{status['state']}, step {status.get('step', 0)})"
        )


def load_run(path: str | Path, *, which: Literal["best", "last"] = "best") -> Run:
    """Open a run folder: `.model`, `.dataset`, `.recipe` and `.metrics` are read when asked for."""
    return Run(path, which=which)


def is_run(path: Path) -> bool:
    """Whether a folder holds a run."""
    try:
        return (path / RECIPE).is_file()
    except OSError:  # a folder that cannot be read, or a name that cannot be
        return False


def find_runs(folder: Path) -> list[Run]:
    """The run folders below a folder, by name, but for hidden ones, where copies are incomplete."""
    found = [path.parent for path in sorted(folder.glob(f"**/{RECIPE}"))]
    hidden = (any(p.startswith(".") for p in run.relative_to(folder).parts) for run in found)
    return [Run(run) for run, skip in zip(found, hidden, strict=True) if not skip]


LOCK_SECONDS = 0.5
"""Longer than `Run.running` holds a lock."""


@contextmanager
def lock_run(path: Path, recipe: Recipe) -> Iterator[Run]:
    """A run folder of this recipe, new or to be resumed, locked by this process."""
    check_run(path, recipe)
    with _locked(make_folder(path)):
        # Again: another process may have begun and ended in between.
        if not check_run(path, recipe):
            write_atomically(path / RECIPE, recipe.to_yaml())
        make_folder(path / "checkpoints")
        yield Run(path)


def check_run(path: Path, recipe: Recipe) -> bool:
    """Whether a run can be resumed; refuses folders that must not be changed. Only reads."""
    with storage_errors(path):
        names = {item.name for item in path.iterdir()} if path.is_dir() else set()
    if RECIPE not in names:
        if not all(name == LOCK or name.startswith(HALF_WRITTEN) for name in names):
            raise UsageError(
                f"{path} is not empty and not a run folder; choose another folder for out"
            )
        return False
    run = Run(path)
    if not run.finished and not checkpoint_steps(run.checkpoints):
        return False
    changes = recipe_diff(asdict(run.recipe), asdict(recipe))
    if changes:
        raise UsageError(
            f"{path} holds a run of another recipe ({'; '.join(changes)}); "
            f"choose another folder for out"
        )
    if run.finished:
        raise UsageError(
            f"{path} holds a finished run, which is never overwritten; choose another folder for "
            f"out, or look at it with 'disentwine evaluate' and 'disentwine report'"
        )
    return True


def recipe_diff(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The keys whose values differ, a line for each."""
    lines: list[str] = []
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += recipe_diff(before, after, f"{prefix}{key}.")
        elif before != after or isinstance(before, bool) != isinstance(after, bool):  # True == 1
            lines.append(f"{prefix}{key} was {before!r}, is {after!r}")
    return lines


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a folder for this process."""
    lock = FileLock(path / LOCK)
    with storage_errors(path):
        try:
            lock.acquire(timeout=LOCK_SECONDS)
        except Timeout as error:
            raise UsageError(f"{path} is being trained by another process") from error
    try:
        yield
    finally:
        lock.release()


EVALUATION = "evaluation.json"

SCORES = "scores.json"
"""Scores that `disentwine evaluate` and reports keep, and those of a study."""


def keep_scores(run: Run, scores: Sequence[Score]) -> None:
    """Write scores of a run into its folder; other scores of the same weights are kept."""
    step = run.checkpoint.step
    old = _read(run, EVALUATION)
    kept = {s["name"]: s for s in old["scores"]} if old.get("step") == step else {}
    kept |= {score.name: to_json(_without_arrays(score)) for score in scores}
    content = {"step": step, "scores": list(kept.values())}
    write_atomically(run.path / EVALUATION, json.dumps(content, indent=1, allow_nan=False) + "\n")


def kept_scores(run: Run) -> list[dict[str, Any]]:
    """The last scores of a run, as `to_json` writes them; an empty list where there are none."""
    evaluated: list[dict[str, Any]] = _read(run, EVALUATION)["scores"]
    return evaluated or _read(run, SCORES)["scores"]


def _without_arrays(score: Score) -> Score:
    """The score without the arrays that figures show."""
    words = {n: value for n, value in score.details.items() if isinstance(value, str | int | float)}
    return replace(score, details=words)


def _read(run: Run, name: str) -> dict[str, Any]:
    try:
        record = json.loads((run.path / name).read_bytes())
    except (OSError, ValueError):
        record = None
    record = record if isinstance(record, dict) else {}
    scores = record.get("scores")
    listed = scores if isinstance(scores, list) else []
    named = [s for s in listed if isinstance(s, dict) and "name" in s]
    return {
        **record,
        "scores": [{**s, "name": new_name(str(s["name"]), SCORE_NAMES)} for s in named],
    }


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading into one line with a remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(
            f"cannot read {path}: {reason}; check its name, and that you may read it"
        ) from error
