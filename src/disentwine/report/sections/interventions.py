"""Report sections of models that intervene: counterfactuals, causal graph and effects."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

from disentwine import figures
from disentwine.core.capabilities import Intervenes
from disentwine.core.dataset import Dataset, Simulates
from disentwine.data.simulation import rerender
from disentwine.metrics.graphs import shd
from disentwine.report.context import Subject
from disentwine.report.html import Picture, Section, Table
from disentwine.report.sections.latents import effects_figure
from disentwine.report.text import display_values, in_words, number, pad_rows
from disentwine.runs.run import Run

VALUES = 7
ENTRY = re.compile(r"A\[(.+)->(.+)\]")


def interventions(subject: Subject) -> Section | None:
    """Counterfactuals of one image under interventions on each concept, and the simulator's images."""
    model, dataset = subject.model, subject.dataset
    if not isinstance(model, Intervenes):
        return None
    train = dataset.factors[dataset.split["train"]]
    index = subject.found.indices[len(subject.found.indices) // 2]
    original = dataset.images[[index]]
    reconstruction = model.reconstruct(original)
    rows, labels = [], []
    for name, factor, column in zip(model.concept_names, dataset.spec, train.T, strict=True):
        values = display_values(factor, column, most=VALUES)
        again = np.repeat(index, len(values))
        rows.append(
            np.concatenate([reconstruction, model.do(dataset.images[again], {name: values})])
        )
        labels.append(f"do({name.replace('_', ' ')})\n{in_words(factor, values)}")
        if isinstance(dataset, Simulates):
            truth = rerender(dataset, again, {name: values}).images
            rows.append(np.concatenate([original, truth]))
            labels.append("simulator")
    simulated = isinstance(dataset, Simulates)
    text = "Reconstruction of one test image, and its counterfactuals under interventions on one concept."
    text += (
        " Below each row are the image itself and the simulator's images under the same interventions."
        * simulated
    )
    if len(set(map(len, rows))) > 1:
        text += " Rows of concepts with fewer values are shorter."
    return Section(
        "Counterfactuals",
        text,
        Picture(
            "interventions",
            f"Images under interventions on {', '.join(model.concept_names)}",
            figures.to_png_bytes(
                figures.labelled_rows(pad_rows(rows), labels, ["no intervention"])
            ),
        ),
    )


def causes(subject: Subject) -> Section | None:
    """The learnt graph, and the true one where it is known."""
    model = subject.model
    if not isinstance(model, Intervenes):
        return None
    graph, true = model.graph, subject.dataset.graph
    text = "The graph over the concepts. Edges are labelled with their weights"
    text += "." if graph.confidence is None else " and, in brackets, their confidence."
    if true is not None:
        distance = int(shd(graph, true).value)
        text += (
            " It equals the true graph."
            if distance == 0
            else f" {distance} of its edges are missing, extra or reversed."
        )
    known = true if true is not None else nx.DiGraph()
    rows = []
    for cause, effect in graph.edges:
        i, j = graph.names.index(cause), graph.names.index(effect)
        sure = "" if graph.confidence is None else f"{graph.confidence[i, j]:.2f}"
        right = (
            ("yes" if known.has_edge(cause, effect) else "no") if true is not None else "unknown"
        )
        rows.append((cause, effect, f"{graph.weights[i, j]:.3f}", sure, right))
    columns = ("cause", "effect", ">weight", ">confidence", "true")
    return Section(
        "Causal graph",
        text,
        Picture(
            "graph",
            "; ".join(f"{cause} causes {effect}" for cause, effect in graph.edges) or "no edges",
            figures.to_png_bytes(figures.graph_figure(graph, true)),
        ),
        Table(columns, tuple(rows)),
    )


def adjacency(subject: Subject) -> Section | None:
    """Entries of A during training, for models that log them."""
    figure = adjacency_figure(subject.run, subject.dataset)
    if figure is None:
        return None
    return Section(
        "Adjacency matrix during training",
        "The adjacency matrix A at several steps; rows are causes and columns are effects. Below, "
        "each entry that is learnt.",
        Picture(
            "adjacency",
            "Heat maps of A at several steps, and curves of its entries",
            figures.to_png_bytes(figure),
        ),
    )


def adjacency_figure(run: Run, dataset: Dataset | None = None) -> Figure | None:
    """A during training, from logged scalars; None where they are not logged.

    Arguments:
        run: whose log is read.
        dataset: with the true graph; by default that of the run.
    """
    records = [r for r in run.metrics if r["kind"] == "watched"]
    entries = {name: match for name in (records or [{}])[0] if (match := ENTRY.fullmatch(name))}
    if len(records) < 2 or not entries:
        return None
    found = dict.fromkeys(end for match in entries.values() for end in match.groups())
    names = list(getattr(run.model, "concept_names", found))
    A = np.zeros((len(records), len(names), len(names)))
    for name, match in entries.items():
        i, j = (names.index(end) for end in match.groups())
        A[:, i, j] = [record[name] for record in records]
    true = (run.dataset if dataset is None else dataset).graph
    truth = None
    if true is not None and set(true.nodes) == set(names):
        truth = nx.to_numpy_array(true, nodelist=names, weight=None)
    return figures.adjacency_over_training(
        [record["step"] for record in records], A, names=names, truth=truth
    )


def effects(subject: Subject) -> Section | None:
    """Effects of interventions, as a concept probe finds them in counterfactual images."""
    figure = effects_figure(subject.found)
    if figure is None:
        return None
    text = (
        "Concepts in counterfactual images, by a concept probe. Numbers are standard deviations of "
        "the label; those in brackets are the probe's errors in the simulator's images."
    )
    leak = subject.found.score("effect-leak-causes")
    if leak is not None:
        text += f" Setting an effect changes its causes by {number(round(leak.value, 3))} at most"
        floor = leak.noise_floor
        text += "." if floor is None else f"; the probe's own error is {number(round(floor, 3))}."
    return Section(
        "Effects of interventions",
        text,
        Picture(
            "effects",
            "Heat maps of expected and measured effects of each intervention on each concept",
            figures.to_png_bytes(figure),
        ),
    )
