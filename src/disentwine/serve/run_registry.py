"""Served runs, reloaded while they train; absolute paths removed from messages."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from weakref import WeakValueDictionary

from disentwine.core.capabilities import capabilities
from disentwine.core.dataset import Dataset, Simulates
from disentwine.core.model import Model
from disentwine.core.random import GENERATOR
from disentwine.data import DATASETS
from disentwine.errors import DisentwineError, warn
from disentwine.runs.checkpoint import checkpoint_steps
from disentwine.runs.run import RECIPE, Run
from disentwine.serve.loaded_run import LoadedRun, MissingError
from disentwine.serve.schema import RunSummary

ABSOLUTE = re.compile(r"(?<![\w.:/])(?:/[^/\s:;,'\"()]+)+")
"""An absolute path, but not that of a URL."""


def as_path(text: Any) -> PurePath | None:
    """A text that is an absolute path, of this system or of Windows; None for other texts.

    >>> as_path("/home/ann smith/photos").name, as_path("photos"), as_path(r"C:\\photos").name
    ('photos', None, 'photos')
    """
    if not isinstance(text, str):
        return None
    kinds = (PurePosixPath(text), PureWindowsPath(text))
    return next((path for path in kinds if path.is_absolute()), None)


def paths_in(value: Any) -> list[PurePath]:
    """All absolute paths among texts in mappings and lists."""
    if isinstance(value, Mapping):
        return [path for item in value.values() for path in paths_in(item)]
    if isinstance(value, list | tuple):
        return [path for item in value for path in paths_in(item)]
    path = as_path(value)
    return [] if path is None else [path]


def basename_paths(value: Any) -> Any:
    """A value with every absolute path replaced by its last name.

    >>> basename_paths({"name": "folder", "path": "/home/ann/photos"})
    {'name': 'folder', 'path': 'photos'}
    """
    if isinstance(value, Mapping):
        return {key: basename_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [basename_paths(item) for item in value]
    path = as_path(value)
    return value if path is None else path.name


def redact_paths(text: str, known: Iterable[PurePath] = ()) -> str:
    """A text with every absolute path replaced by its last name.

    Arguments:
        text: such as an error message.
        known: paths that may be in it; needed for paths with spaces.

    >>> redact_paths("/a b/c: no such folder; see https://x.org/y", [PurePosixPath("/a b/c")])
    'c: no such folder; see https://x.org/y'
    """
    names: dict[str, str] = {}
    for path in known:
        name = Path(path).resolve().name
        names |= {str(path): name, str(Path(path).resolve()): name}
    for known_path in sorted(names.keys() - {".", ".."}, key=len, reverse=True):
        text = text.replace(known_path, names[known_path])
    return ABSOLUTE.sub(lambda path: PurePosixPath(path[0]).name, text)


FRESH_SECONDS = 1.0
"""Seconds after which newer weights of a training run are looked for."""


class DatasetCache:
    """Data sets shared between runs, released with the last run that uses them."""

    def __init__(self) -> None:
        self._datasets: WeakValueDictionary[str, Dataset] = WeakValueDictionary()

    def find(self, run: Run) -> Dataset:
        """The data set of a run; an error says why it is not available."""
        key = json.dumps(run.recipe.data, sort_keys=True)
        dataset = self._datasets.get(key)
        if dataset is None:
            dataset = self._datasets[key] = run.dataset
        return dataset


class ServedRun:
    """A run of the server.

    Arguments:
        path: the run folder.
        datasets: the cache of data sets.
    """

    def __init__(self, path: Path, datasets: DatasetCache) -> None:
        self.path = path
        self.datasets = datasets
        self.id = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
        self.run = Run(path)
        self._identity = folder_identity(path)
        self.loaded_run: LoadedRun | None = None
        self._saved: list[int] = []
        self._loaded_at = 0.0
        self._settled = False
        self._known: list[str] = []

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def finished(self) -> bool:
        """Whether its training is finished; False if its status cannot be read."""
        try:
            return self.run.finished
        except DisentwineError:
            return False

    @property
    def stale(self) -> bool:
        """Whether to look for newer weights; never for a finished run."""
        self.reset_if_replaced()
        if self.loaded_run is None:
            return True
        return not self._settled and time.monotonic() - self._loaded_at > FRESH_SECONDS

    def reset_if_replaced(self) -> None:
        """Reset the state if another run was trained in the folder since."""
        now = folder_identity(self.path)
        if now is None or now == self._identity:
            return
        try:
            run = Run(self.path)
            _ = run.recipe
        except DisentwineError:
            return
        self.run, self._identity, self.loaded_run = run, now, None
        self._saved, self._settled, self._known = [], False, []

    def load(self) -> LoadedRun:
        """Load the weights, or newer ones if training has saved some."""
        self._loaded_at = time.monotonic()
        began = folder_identity(self.path)  # the run may be replaced while it is read
        settled = self.finished
        saved = checkpoint_steps(self.run.checkpoints)
        if self.loaded_run is not None and saved == self._saved:
            self._settled = settled
            return self.loaded_run
        try:
            run = self.reread()
            if not saved:
                raise MissingError(f"{self.name} has no checkpoint yet: let it train for a while")
            model, step = _built(run), run.checkpoint.step
        except (DisentwineError, MissingError) as error:
            # Training may have removed the checkpoint since, or a user the folder.
            if self.loaded_run is not None:
                return self.loaded_run
            raise MissingError(self.redact_paths(error)) from error
        if self.loaded_run is None:
            dataset, unavailable = self._data(run)
            self.loaded_run = LoadedRun(model, dataset, step, unavailable=unavailable)
        elif self.loaded_run.step != step:
            before = self.loaded_run
            self.loaded_run = LoadedRun(model, before.dataset, step, unavailable=before.unavailable)
        self.run, self._identity, self._saved, self._settled = run, began, saved, settled
        return self.loaded_run

    def reread(self) -> Run:
        """The run as it is on disk."""
        if not self.path.is_dir():
            raise MissingError(
                f"{self.name}: its folder is gone; restore it, or restart the server"
            )
        return Run(self.path)

    def redact_paths(self, error: Exception) -> str:
        """The message of an error without absolute paths, which visitors must not see."""
        return redact_paths(str(error), [self.path, *paths_in(asdict(self.run.recipe))])

    def _data(self, run: Run) -> tuple[Dataset | None, str]:
        """Its data set, or the reason why it is unavailable; uploads work without it."""
        try:
            return self.datasets.find(run), ""
        except DisentwineError as error:
            warn(f"{self.name}: its data set is not available, only uploaded images: {error}")
            return None, self.redact_paths(error)

    def summary(self) -> RunSummary:
        """Its entry in the list of runs."""
        self.reset_if_replaced()
        recipe = self.run.recipe
        simulated = DATASETS.get(recipe.data["name"])
        return RunSummary(
            id=self.id,
            name=self.name,
            model=recipe.model["name"],
            data=recipe.data["name"],
            capabilities=self._capabilities(),
            finished=self.finished,
            steps=recipe.training["steps"],
            simulator=simulated is not None and issubclass(simulated, Simulates),
        )

    def _capabilities(self) -> list[str]:
        """Capabilities of its model; empty before the first checkpoint."""
        if not self._known:
            try:
                model = self.loaded_run.model if self.loaded_run else _built(Run(self.path))
            except DisentwineError:
                return []
            names = (name.replace(" ", "-") for name in capabilities(model))
            self._known = ["represents", *names]
        return self._known


def folder_identity(path: Path) -> tuple[int, int] | None:
    """Identity of the recipe file, which is written once: it changes if the run is replaced."""
    try:
        recipe = (path / RECIPE).stat()
    except OSError:
        return None
    return recipe.st_ino, recipe.st_mtime_ns


def _built(run: Run) -> Model:
    """The model of a run; its random initial weights do not change the global generator."""
    _ = run.checkpoint  # reading it takes longest and needs no random numbers
    with GENERATOR:
        return run.model


class RunRegistry:
    """All served runs, by an id that does not reveal their folders.

    Arguments:
        paths: run folders.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        datasets = DatasetCache()
        self.runs = {served.id: served for served in (ServedRun(path, datasets) for path in paths)}
        for served in self.runs.values():
            _ = served.run.recipe  # raises before serving if a recipe cannot be read

    def find(self, name: str) -> ServedRun:
        if name not in self.runs:
            raise MissingError("there is no such run; GET /api/runs lists the runs")
        return self.runs[name]
