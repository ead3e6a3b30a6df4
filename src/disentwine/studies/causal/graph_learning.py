"""Figures of graph learning, after CausalVAE's Figure 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.causal import discover, discover_notears
from disentwine.core.dataset import Dataset
from disentwine.core.types import FloatArray
from disentwine.report.sections.interventions import adjacency_figure
from disentwine.runs.run import Run
from disentwine.studies.figures import FigureFiles, draw_or_keep, first_of_each
from disentwine.studies.trial import TrialResult

LABELS = (30, 50, 100, 200, 500, 1000, 2000, 5000)
"""Numbers of labels the graph is learnt from, as far as the data have them."""


def graph_learning_figures(
    results: Sequence[TrialResult], runs: Path, folder: Path, *, system: str
) -> FigureFiles:
    """A by the number of labels, during the paper's pre-training, and during training."""
    written: FigureFiles = []
    for (data, name), result in first_of_each(results).items():
        if name == system:
            captions = {
                "labels": f"The graph of {data} by the number of labels",
                "least-squares": f"The graph of {data} during the paper's pre-training",
                "training": f"A of {result.trial.title} on {data} during training",
            }
            figure_files = [
                (caption, folder / f"adjacency-{kind}-{data}.png")
                for kind, caption in captions.items()
            ]
            draw = partial(_draw, figure_files)
            written += draw_or_keep(figure_files, {system: result}, runs, draw)
    return written


def _draw(figure_files: FigureFiles, loaded: Mapping[str, Run]) -> FigureFiles:
    (run,) = loaded.values()
    if run.dataset.graph is None:
        return []
    made = _over_labels(run.dataset), _by_least_squares(run.dataset), adjacency_figure(run)
    return [
        (caption, figures.save_figure(figure, path))
        for (caption, path), figure in zip(figure_files, made, strict=True)
        if figure is not None
    ]


def _over_labels(dataset: Dataset) -> Figure:
    labels = _shuffled_labels(dataset)
    counts = [n for n in LABELS if n < len(labels)] + [len(labels)]
    A = [discover(labels[:n], dataset.names).weights for n in counts]
    return figures.adjacency_over_training(
        [0, *counts],
        [np.zeros_like(A[0]), *A],
        names=dataset.names,
        truth=_truth(dataset),
        unit="labels",
    )


def _by_least_squares(dataset: Dataset) -> Figure:
    path: list[FloatArray] = []
    discover_notears(_shuffled_labels(dataset), dataset.names, on_step=path.append)
    return figures.adjacency_over_training(
        range(len(path)), path, names=dataset.names, truth=_truth(dataset)
    )


def _shuffled_labels(dataset: Dataset) -> FloatArray:
    train = np.random.default_rng(0).permutation(dataset.split["train"])
    return np.asarray(dataset.factors[train])


def _truth(dataset: Dataset) -> FloatArray:
    return np.asarray(nx.to_numpy_array(dataset.graph, nodelist=dataset.names, weight=None))
