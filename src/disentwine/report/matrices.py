"""Pictures of what each code knows of each factor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.contracts.score import Score
from disentwine.report.evaluation import Evaluation
from disentwine.training.storage import write_atomically

MOST_CODES = 200


def matrix_figure(score: Score) -> Figure | None:
    """The score matrix of codes by factors, where the metric has one."""
    matrix = score.details.get("matrix")
    if matrix is None or len(matrix) > MOST_CODES:
        return None
    matrix = np.asarray(matrix)
    return figures.score_matrix(
        matrix,
        rows=[f"z{i}" for i in range(len(matrix))],
        columns=score.details["factors"],
        title=score.name,
    )


def save_matrices(found: Evaluation, folder: Path) -> Iterator[Path]:
    """Save a picture for each score that has a matrix; yields their paths."""
    for score in found.scores:
        figure = matrix_figure(score)
        if figure is not None:
            path = folder / f"{score.name}-matrix.png"
            write_atomically(path, figures.to_png_bytes(figure))
            yield path
