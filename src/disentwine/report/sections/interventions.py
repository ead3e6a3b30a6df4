"""Report sections on causal models: counterfactuals, causal graph, effects."""

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


def counterfactuals(context: ReportContext) -> Section | None:
    """One image under interventions on each concept, with the ground truth of a simulator."""
    model, dataset = context.model, context.dataset
    if not isinstance(model, Intervenes):
        return None
    train = dataset.factors[dataset.split["train"]]
    index = context.found.indices[len(context.found.indices) // 2]
    original = dataset.images[[index]]
    reconstruction = model.reconstruct(original)
    rows, labels = [], []
    for name, factor, column in zip(model.concept_names, dataset.spec, train.T, strict=True):
        values = display_values(factor, column, most=VALUES)
        again = np.repeat(index, len(values))
        rows.append(
            np.concatenate([reconstruction, model.do(dataset.images[again], {name: values})])
        )
        labels.append(f"do({name.replace('_', ' ')})\n{value_labels(factor, values)}")
        if isinstance(dataset, Simulates):
            truth = rerender(dataset, again, {name: values}).images
            rows.append(np.concatenate([original, truth]))
            labels.append("ground truth")
    simulated = isinstance(dataset, Simulates)
    text = "The reconstruction of a test image, and its counterfactuals under interventions on one concept."
    text += (
        " Below each row: the image, and the ground truth of the simulator under the same interventions."
        * simulated
    )
    if len(set(map(len, rows))) > 1:
        text += " Concepts with fewer values leave places empty."
    return Section(
        "Counterfactuals",
        text,
        Image(
            "interventions",
            f"Images under interventions on {', '.join(model.concept_names)}",
            figures.to_png_bytes(
                figures.labelled_rows(pad_rows(rows), labels, ["no intervention"])
            ),
        ),
    )


def causal_graph(context: ReportContext) -> Section | None:
    """The learnt graph, and the true graph if it is known."""
    model = context.model
    if not isinstance(model, Intervenes):
        return None
    graph, true = model.graph, context.dataset.graph
    text = "The learnt graph of the concepts. Edge labels: weight"
    text += "." if graph.confidence is None else " and, in brackets, confidence."
    if true is not None:
        distance = int(shd(graph, true).value)
        text += (
            " All edges match the true graph."
            if distance == 0
            else f" {distance} edges are missing, extra or reversed (structural Hamming distance)."
        )
    known = true if true is not None else nx.DiGraph()
    rows = []
    for cause, effect in graph.edges:
        i, j = graph.names.index(cause), graph.names.index(effect)
        confidence = "" if graph.confidence is None else f"{graph.confidence[i, j]:.2f}"
        match = (
            ("yes" if known.has_edge(cause, effect) else "no") if true is not None else "unknown"
        )
        rows.append((cause, effect, f"{graph.weights[i, j]:.3f}", confidence, match))
    columns = ("cause", "effect", ">weight", ">confidence", "match")
    return Section(
        "Causal graph",
        text,
        Image(
            "graph",
            "; ".join(f"{cause} causes {effect}" for cause, effect in graph.edges) or "no edges",
            figures.to_png_bytes(figures.graph_figure(graph, true)),
        ),
        Table(columns, tuple(rows)),
    )


def graph_weights(context: ReportContext) -> Section | None:
    """The entries of A during training, for models that log them."""
    figure = adjacency_figure(context.run, context.dataset)
    if figure is None:
        return None
    return Section(
        "Graph weights during training",
        "The adjacency matrix A during training, with causes as rows and effects as columns; below, "
        "each of its learnt entries.",
        Image(
            "adjacency",
            "Heat maps of A at several steps, and curves of its entries",
            figures.to_png_bytes(figure),
        ),
    )


def adjacency_figure(run: Run, dataset: Dataset | None = None) -> Figure | None:
    """A during training, from the logged scalars; None if A was not logged.

    Arguments:
        run: whose log is read.
        dataset: that knows the true graph; by default that of the recipe.
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


def effects(context: ReportContext) -> Section | None:
    """Effects of interventions, measured by a concept probe on counterfactuals."""
    figure = effects_figure(context.found)
    if figure is None:
        return None
    text = (
        "Concepts of counterfactual images, predicted by a concept probe. Numbers are in standard "
        "deviations of the label. A probe is unreliable for combinations that no training image shows."
    )
    if isinstance(context.dataset, Simulates):
        text += " In brackets is the error of the probe on images of the simulator."
    change = context.found.score("off-target-effect-causes")
    if change is not None:
        most = number(round(change.value, 3))
        text += f" By the probe, interventions on an effect change its causes by at most {most}"
        floor = change.noise_floor
        text += (
            "."
            if floor is None
            else f"; the probe alone has an error of {number(round(floor, 3))}."
        )
    return Section(
        "Effects of interventions",
        text,
        Image(
            "effects",
            "Heat maps of the expected and actual effect of each intervention on each concept",
            figures.to_png_bytes(figure),
        ),
    )
