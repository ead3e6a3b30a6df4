"""The runs that are served: opened when first asked for, their weights renewed while they train."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from disentwine.contracts.capabilities import capabilities
from disentwine.contracts.dataset import Dataset, Simulates
from disentwine.data import DATASETS
from disentwine.errors import DisentwineError
from disentwine.serve.opened import MissingError, Opened
from disentwine.serve.schema import RunSummary
from disentwine.training.checkpoint import checkpoint_steps
from disentwine.training.run import Run

FRESH_SECONDS = 1.0
"""How long a run's weights are believed to be the newest."""

DATASETS_KEPT = 4


class Shelf:
    """Data sets, shared between the runs that learnt from the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Dataset | None] = OrderedDict()

    def find(self, run: Run) -> Dataset | None:
        """The data set of a run; None where its files are not at hand."""
        key = json.dumps(run.recipe.data, sort_keys=True)
        if key not in self._kept:
            try:
                self._kept[key] = run.dataset
            except DisentwineError:
                return None
            if len(self._kept) > DATASETS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


class Entry:
    """One run that is served.

    Arguments:
        path: the run folder.
        shelf: where its data set is found.
    """

    def __init__(self, path: Path, shelf: Shelf) -> None:
        self.path = path
        self.shelf = shelf
        self.id = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
        self.run = Run(path)
        self.opened: Opened | None = None
        self._saved: list[int] = []
        self._looked = 0.0
        self._settled = False
        self._known: list[str] = []

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def stale(self) -> bool:
        """Whether it is time to look for newer weights; a finished run has its last."""
        if self.opened is None:
            return True
        return not self._settled and time.monotonic() - self._looked > FRESH_SECONDS

    def open(self) -> Opened:
        """Load the weights, or newer ones where training has saved some."""
        self._looked = time.monotonic()
        settled = self.run.finished
        saved = checkpoint_steps(self.run.checkpoints)
        if self.opened is not None and saved == self._saved:
            self._settled = settled
            return self.opened
        if not saved:
            raise MissingError(f"{self.name} has no checkpoint yet: let it train for a while")
        try:
            run = Run(self.path)
            model, step = run.model, run.checkpoint.step
        except DisentwineError as error:
            # Training may have removed it between the listing and the reading.
            if self.opened is not None:
                return self.opened
            raise MissingError(str(error).replace(str(self.path), self.name)) from error
        if self.opened is None or self.opened.step != step:
            dataset = self.opened.dataset if self.opened else self.shelf.find(run)
            self.opened = Opened(model, dataset, step)
        self.run, self._saved, self._settled = run, saved, settled
        return self.opened

    def summary(self) -> RunSummary:
        """What the list of runs says of it."""
        recipe = self.run.recipe
        simulated = DATASETS.get(recipe.data["name"])
        return RunSummary(
            id=self.id,
            name=self.name,
            model=recipe.model["name"],
            data=recipe.data["name"],
            capabilities=self._capabilities(),
            finished=self.run.finished,
            steps=recipe.training["steps"],
            simulator=simulated is not None and issubclass(simulated, Simulates),
        )

    def _capabilities(self) -> list[str]:
        """What its model can do; nothing is known before the first checkpoint."""
        if not self._known:
            try:
                model = self.opened.model if self.opened else Run(self.path).model
            except DisentwineError:
                return []
            names = (name.replace(" ", "-") for name in capabilities(model))
            self._known = ["represents", *names]
        return self._known


class Library:
    """All runs that are served, by an id that tells nothing of where they are.

    Arguments:
        paths: run folders.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        shelf = Shelf()
        self.entries = {entry.id: entry for entry in (Entry(path, shelf) for path in paths)}
        for entry in self.entries.values():
            _ = entry.run.recipe  # a recipe that cannot be read is told before anything is served

    def find(self, name: str) -> Entry:
        if name not in self.entries:
            raise MissingError("there is no such run; GET /api/runs lists those there are")
        return self.entries[name]
