"""One training of a study, and what it measured."""

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
from disentwine.runs.recipe import Recipe, read_recipe
from disentwine.runs.run import Run, is_run, load_run
from disentwine.runs.storage import canonical_json
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
    def title(self) -> str:
        """The system, and what tells this row from others of it."""
        return f"{self.system} ({self.note})" if self.note else self.system

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

    @cached_property
    def digest(self) -> str:
        """What identifies it: the keys of its recipe that differ from their defaults.

        The trial whose weights it begins with counts by its own digest, wherever its run is.
        """
        content = self.read_recipe().non_defaults()
        if self.after is not None:
            content["training"]["init_from"] = self.after.digest
        return hashlib.sha256(canonical_json(content)).hexdigest()[:8]

    def folder(self, runs: Path) -> Path:
        """Where its run is kept: another recipe has another folder."""
        parts = filter(None, (self.data, self.system, self.note, str(self.seed), self.digest))
        return runs / re.sub(r"[^\w.]+", "-", "-".join(parts))

    def finished_run(self, runs: Path) -> Run | None:
        """Its run, if that is at hand and was trained to its end."""
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
    """As YAML reads it back, whatever is in the names of folders."""
    text = str(path)
    return text if re.fullmatch(r"[\w./-]+", text) else json.dumps(text)


@dataclass(frozen=True)
class TrialResult:
    """What one trial measured.

    Arguments:
        trial: which one.
        scores: (name, value, n and details) of each score, as JSON has them.
        minutes: of training and measuring, on one core.
        course: what was measured at its checkpoints, if anything was.
    """

    trial: Trial
    scores: tuple[Mapping[str, Any], ...]
    minutes: float
    learning_curve: LearningCurve = ()


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
