"""A trial (one training of a study) and its result."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from disentwine.core.dataset import Dataset
from disentwine.errors import DataError
from disentwine.runs.checkpoint import canonical_json
from disentwine.runs.recipe import Recipe, read_recipe
from disentwine.runs.run import Run, is_run, load_run
from disentwine.studies.learning_curves import LearningCurve


@dataclass(frozen=True)
class Trial:
    """One training of a study.

    Arguments:
        system: the row of the table it belongs to.
        data: the data set of the row.
        seed: of the training.
        recipe: name of a ready recipe.
        overrides: `key=value` for it.
        note: distinguishes this row from others of the same system and data.
        stage: trials of earlier stages run first; the most informative ones are in the first stage.
        baseline: representation to measure on the recipe's data without training
            (see `evaluation.baselines`).
        after: the trial whose weights initialise this one; it runs before.
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
    def title(self) -> str:
        """System and note."""
        return f"{self.system} ({self.note})" if self.note else self.system

    @property
    def command(self) -> str:
        """Arguments of `disentwine train`, without the seed."""
        made = " ".join((self.recipe, *self.overrides, *self._start(Path())))
        return f"none: {self.baseline} of the data of {made}" if self.baseline else made

    def read_recipe(self, runs: Path = Path()) -> Recipe:
        """The recipe with all defaults, for one thread; `runs` has the run that initialises it."""
        words = (*self.overrides, *self._start(runs), "training.threads=1", f"seed={self.seed}")
        return read_recipe(self.recipe, words)

    def has_data(self) -> bool:
        """Whether its images are available."""
        try:
            self.read_recipe().build_dataset()
        except DataError:
            return False
        return True

    @cached_property
    def digest(self) -> str:
        """Digest of the recipe keys that differ from their defaults.

        The trial whose weights initialise this one counts by its own digest, not by its folder.
        """
        content = self.read_recipe().non_defaults()
        if self.after is not None:
            content["training"]["init_from"] = self.after.digest
        return hashlib.sha256(canonical_json(content)).hexdigest()[:8]

    def folder(self, runs: Path) -> Path:
        """Folder of its run; another recipe has another folder."""
        parts = filter(None, (self.data, self.system, self.note, str(self.seed), self.digest))
        return runs / re.sub(r"[^\w.]+", "-", "-".join(parts))

    def finished_run(self, runs: Path) -> Run | None:
        """Its run, if it exists and is finished."""
        folder = self.folder(runs)
        run = load_run(folder) if is_run(folder) else None
        return run if run is not None and run.finished else None

    def _start(self, runs: Path) -> tuple[str, ...]:
        return (
            ()
            if self.after is None
            else (f"training.init_from={_quoted(self.after.folder(runs))}",)
        )


def _quoted(path: Path) -> str:
    """A path as a YAML value, with any characters."""
    text = str(path)
    return text if re.fullmatch(r"[\w./-]+", text) else json.dumps(text)


@dataclass(frozen=True)
class TrialResult:
    """Scores of one trial.

    Arguments:
        trial: the trial.
        scores: name, value, n and details of each score, as in JSON.
        minutes: of training and evaluation, on one core.
        learning_curve: scores at its checkpoints, if any.
    """

    trial: Trial
    scores: tuple[Mapping[str, Any], ...]
    minutes: float
    learning_curve: LearningCurve = ()


@dataclass(frozen=True)
class Baseline:
    """A representation without training.

    Arguments:
        name: of the representation, see `evaluation.baselines`.
        recipe: its data and seed are used.
    """

    name: str
    recipe: Recipe

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the recipe."""
        return self.recipe.build_dataset()
