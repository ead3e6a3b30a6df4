"""The pictures of the study `ctvae`: repeated interventions, what actions touch, and confusions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from disentwine import figures
from disentwine.contracts.capabilities import Transits
from disentwine.contracts.dataset import UInt8Array
from disentwine.figures.actions import confusion_matrix
from disentwine.report.action_figures import graphs_of, repeated_rows
from disentwine.studies.pictures import Pictures
from disentwine.studies.trials import Outcome
from disentwine.training.run import load_run

REPEATS = 5


def repeated_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """A test image under each action, once to five times (the paper's Fig. 5)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        run = load_run(outcome.trial.folder(runs))
        model: Any = run.model
        if not isinstance(model, Transits):
            continue
        test = run.dataset.split["test"]
        image: UInt8Array = run.dataset.images[np.array([test[len(test) // 2]])][0]
        rows, labels = repeated_rows(model, image, times=REPEATS)
        path = folder / f"repeated-{name}.png"
        figures.save_figure(figures.labelled_rows(rows, labels), path)
        caption = f"Each action once to {REPEATS} times, after the image and its reconstruction"
        drawn.append((f"{caption}: {name}", path))
    return drawn


def graph_pictures(outcomes: Sequence[Outcome], runs: Path, folder: Path) -> Pictures:
    """What each action touches and which nodes depend on which (the paper's Fig. 6)."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        run = load_run(outcome.trial.folder(runs))
        model: Any = run.model
        test = run.dataset.split["test"]
        images = run.dataset.images[test[np.linspace(0, len(test) - 1, 64).astype(np.int64)]]
        path = folder / f"graphs-{name}.png"
        figures.save_figure(graphs_of(model, images), path)
        drawn.append((f"What each action touches, and what depends on what: {name}", path))
    return drawn


def confusion_pictures(outcomes: Sequence[Outcome], folder: Path) -> Pictures:
    """Which actions are taken for which."""
    drawn: Pictures = []
    for name, outcome in _shown(outcomes).items():
        score = next(s for s in outcome.scores if s["name"] == "action-accuracy")
        path = folder / f"confusion-{name}.png"
        details = score["details"]
        figures.save_figure(confusion_matrix(details["confusion"], details["names"]), path)
        drawn.append((f"Which action is taken for which: {name}", path))
    return drawn


def _shown(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """The first seed of each data set, without variants."""
    found: dict[str, Outcome] = {}
    for outcome in outcomes:
        if not outcome.trial.note:
            found.setdefault(outcome.trial.data, outcome)
    return found
