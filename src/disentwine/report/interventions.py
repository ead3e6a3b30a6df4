"""The sections of a report on models that intervene: what would have been, and what causes what."""

from __future__ import annotations

import networkx as nx
import numpy as np

from disentwine import figures
from disentwine.contracts.dataset import Simulates
from disentwine.contracts.model import Intervenes
from disentwine.metrics.graphs import shd
from disentwine.report.page import Picture, Section, Table
from disentwine.report.subject import Subject, number

VALUES = 7


def interventions(subject: Subject) -> Section | None:
    """One image under interventions on each concept, beside the truth where a simulator knows it."""
    model, dataset = subject.model, subject.dataset
    if not isinstance(model, Intervenes):
        return None
    train = dataset.factors[dataset.split["train"]]
    index = subject.found.indices[len(subject.found.indices) // 2]
    picture, factors = dataset.images[index], dataset.factors[[index]]
    noise = getattr(dataset, "noise", None)
    rows, labels = [], []
    for name, column in zip(model.concept_names, train.T, strict=True):
        least, most = np.nanquantile(column, [0.02, 0.98])
        values = np.linspace(least, most, VALUES)
        stack = np.repeat(picture[None], VALUES, axis=0)
        rows.append(model.do(stack, {name: values}))
        labels.append(f"do({name.replace('_', ' ')})\n{number(values[0])} to {number(values[-1])}")
        if isinstance(dataset, Simulates):
            own_noise = None if noise is None else np.repeat(noise[[index]], VALUES)
            truth = dataset.simulate(
                np.repeat(factors, VALUES, axis=0), {name: values}, noise=own_noise
            )
            rows.append(truth.images)
            labels.append("truth")
    simulated = isinstance(dataset, Simulates)
    text = "One test image, and what it would have been had one concept been different."
    text += " Below each row is what the simulator draws under the same intervention." * simulated
    return Section(
        "What would have been",
        text,
        Picture(
            "interventions",
            f"Images under interventions on {', '.join(model.concept_names)}",
            figures.to_png_bytes(figures.labelled_rows(np.stack(rows), labels)),
        ),
    )


def causes(subject: Subject) -> Section | None:
    """The learnt graph, edge by edge."""
    model = subject.model
    if not isinstance(model, Intervenes):
        return None
    graph, true = model.graph, subject.dataset.graph
    text = "The graph over the concepts."
    if true is not None:
        distance = int(shd(graph.to_networkx(), true).value)
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
    return Section("What causes what", text, table=Table(columns, tuple(rows)))
