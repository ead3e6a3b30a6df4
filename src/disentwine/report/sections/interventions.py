"""The sections of a report on models that intervene: what would have been, and what causes what."""

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
from disentwine.report.context import ReportContext
from disentwine.report.html import Image, Section, Table
from disentwine.report.sections.latents import effects_figure
from disentwine.report.text import display_values, number, pad_rows, value_labels
from disentwine.runs.run import Run

VALUES = 7
ENTRY = re.compile(r"A\[(.+)->(.+)\]")


def interventions(subject: ReportContext) -> Section | None:
    """One image under interventions on each concept, beside the truth where a simulator knows it."""
    model, dataset = subject.model, subject.dataset
    if not isinstance(model, Intervenes):
        return None
    train = dataset.factors[dataset.split["train"]]
    index = subject.found.indices[len(subject.found.indices) // 2]
    as_it_is = dataset.images[[index]]
    read = model.reconstruct(as_it_is)
    rows, labels = [], []
    for name, factor, column in zip(model.concept_names, dataset.spec, train.T, strict=True):
        values = display_values(factor, column, most=VALUES)
        again = np.repeat(index, len(values))
        rows.append(np.concatenate([read, model.do(dataset.images[again], {name: values})]))
        labels.append(f"do({name.replace('_', ' ')})\n{value_labels(factor, values)}")
        if isinstance(dataset, Simulates):
            truth = rerender(dataset, again, {name: values}).images
            rows.append(np.concatenate([as_it_is, truth]))
            labels.append("truth")
    simulated = isinstance(dataset, Simulates)
    text = (
        "One test image, reconstructed, and what it would have been had one concept been different."
    )
    text += (
        " Below each row are the image itself and what the simulator draws under the same intervention."
        * simulated
    )
    if len(set(map(len, rows))) > 1:
        text += " A concept with fewer values leaves places empty."
    return Section(
        "What would have been",
        text,
        Image(
            "interventions",
            f"Images under interventions on {', '.join(model.concept_names)}",
            figures.to_png_bytes(figures.labelled_rows(pad_rows(rows), labels, ["as it is"])),
        ),
    )


def causes(subject: ReportContext) -> Section | None:
    """The learnt graph, beside the true one where it is known."""
    model = subject.model
    if not isinstance(model, Intervenes):
        return None
    graph, true = model.graph, subject.dataset.graph
    text = "The graph over the concepts. On an edge is its weight"
    text += "." if graph.confidence is None else " and, in brackets, how sure it is."
    if true is not None:
        distance = int(shd(graph, true).value)
        text += (
            " It is the true graph, edge for edge."
            if distance == 0
            else f" {distance} of its edges are missing, extra or turned round."
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
        "What causes what",
        text,
        Image(
            "graph",
            "; ".join(f"{cause} causes {effect}" for cause, effect in graph.edges) or "no edges",
            figures.to_png_bytes(figures.graph_figure(graph, true)),
        ),
        Table(columns, tuple(rows)),
    )


def adjacency(subject: ReportContext) -> Section | None:
    """How training changed the entries of A, for models that have them watched."""
    figure = adjacency_figure(subject.run, subject.dataset)
    if figure is None:
        return None
    return Section(
        "How the weights of the graph were learnt",
        "The adjacency matrix A over the training, a row a cause and a column an effect; below, "
        "each of its entries that is learnt.",
        Image(
            "adjacency",
            "Heat maps of A at several steps, and curves of its entries",
            figures.to_png_bytes(figure),
        ),
    )


def adjacency_figure(run: Run, dataset: Dataset | None = None) -> Figure | None:
    """A over the training, from the log of what was watched; None where A was not.

    Arguments:
        run: whose log is read.
        dataset: that knows the true graph; by default the one the run was trained on, built anew.
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


def effects(subject: ReportContext) -> Section | None:
    """What interventions move, read back from the images they make."""
    figure = effects_figure(subject.found)
    if figure is None:
        return None
    text = (
        "Concepts read back from do-images by a network that was trained for nothing else. Numbers "
        "are standard deviations of the label; those in brackets are what the reader gets wrong in "
        "the simulator's own images."
    )
    leak = subject.found.score("off-target-effect-causes")
    if leak is not None:
        text += f" Setting an effect moves its causes by {number(round(leak.value, 3))} at most"
        floor = leak.noise_floor
        text += (
            "." if floor is None else f", where the reader alone sees {number(round(floor, 3))}."
        )
    return Section(
        "What interventions move",
        text,
        Image(
            "effects",
            "Heat maps of how far each intervention should move and does move each concept",
            figures.to_png_bytes(figure),
        ),
    )
