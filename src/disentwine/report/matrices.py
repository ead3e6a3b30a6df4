"""Pictures of what each code knows of each factor, and of what each intervention moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.contracts.score import Score
from disentwine.report.evaluation import Evaluation
from disentwine.training.storage import write_atomically

MOST_CODES = 200


def matrix_figure(score: Score, *, units: Mapping[int, str] | None = None) -> Figure | None:
    """The score matrix of codes by factors, where the metric has one.

    Arguments:
        score: of codes and factors.
        units: the codes to show, by number, and their names; all where none are given.
    """
    matrix = score.details.get("matrix")
    if matrix is None:
        return None
    names = {i: f"z{i}" for i in range(len(matrix))} if units is None else units
    if not 0 < len(names) <= MOST_CODES:
        return None
    return figures.score_matrix(
        np.asarray(matrix)[list(names)],
        rows=list(names.values()),
        columns=score.details["factors"],
        title=score.name,
    )


def effects_figure(found: Evaluation) -> Figure | None:
    """What interventions should move and do move, where that was measured."""
    leak = found.score("effect-leak")
    return None if leak is None else effects_of(leak.details)


def effects_of(measured: Mapping[str, Any]) -> Figure:
    """The heat maps of the matrices that `report.effects` measured."""
    return figures.effect_matrix_figure(
        expected=measured["expected_movement"],
        actual=measured["actual_movement"],
        error=measured["error"],
        floor=measured.get("error_floor"),
        rows=measured["concepts"],
        columns=measured["factors"],
    )


def save_matrices(found: Evaluation, folder: Path) -> Iterator[Path]:
    """Save a picture for each score that has a matrix; yields their paths."""
    pictures = {f"{score.name}-matrix": matrix_figure(score) for score in found.scores}
    pictures["effects"] = effects_figure(found)
    for name, figure in pictures.items():
        if figure is not None:
            path = folder / f"{name}.png"
            write_atomically(path, figures.to_png_bytes(figure))
            yield path
