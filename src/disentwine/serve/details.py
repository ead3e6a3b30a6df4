"""Details of a run: description, graphs, scores, training losses."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import networkx as nx
import numpy as np

from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Intervenes
from disentwine.errors import CheckpointError, DisentwineError
from disentwine.evaluation.disentanglement import MEASURED_TOGETHER
from disentwine.metrics.registry import METRICS
from disentwine.runs.recipe import Recipe
from disentwine.runs.run import Run, kept_scores
from disentwine.serve.actions import actions_of
from disentwine.serve.controls import number
from disentwine.serve.loaded_run import LoadedRun
from disentwine.serve.run_registry import ServedRun, basename_paths
from disentwine.serve.schema import Edge, GraphAnswer, RunDetails, ScoreAnswer, TrainingAnswer

MOST_ROWS = 500


def describe(served: ServedRun, loaded_run: LoadedRun) -> RunDetails:
    """All details that the page needs for its layout."""
    model, dataset = loaded_run.model, loaded_run.dataset
    return RunDetails(
        **served.summary().model_dump(),
        step=loaded_run.step,
        shape=loaded_run.shape,
        recipe=Recipe(**basename_paths(asdict(served.run.recipe))).to_yaml(),
        concepts=loaded_run.concepts,
        latent_count=loaded_run.latent_count,
        latent_names=loaded_run.latent_names,
        latent_layers=loaded_run.latent_layers,
        actions=actions_of(loaded_run),
        graph=learnt_graph(model.graph) if isinstance(model, Intervenes) else None,
        true_graph=true_graph(dataset.graph) if dataset and dataset.graph is not None else None,
        examples=len(loaded_run.display_order),
        unavailable=loaded_run.unavailable,
    )


def learnt_graph(graph: Graph) -> GraphAnswer:
    """The learnt graph of a model, with weight and confidence of each edge."""
    place = {name: i for i, name in enumerate(graph.names)}
    edges = [
        Edge(
            source=cause,
            target=effect,
            weight=float(graph.weights[place[cause], place[effect]]),
            confidence=None
            if graph.confidence is None
            else float(graph.confidence[place[cause], place[effect]]),
        )
        for cause, effect in graph.edges
    ]
    return GraphAnswer(nodes=list(graph.names), edges=edges)


def true_graph(graph: nx.DiGraph) -> GraphAnswer:
    """The true graph of a data set, without weights."""
    edges = [Edge(source=a, target=b, weight=None, confidence=None) for a, b in graph.edges]
    return GraphAnswer(nodes=list(graph.nodes), edges=edges)


def stored_scores(run: Run) -> list[ScoreAnswer]:
    """The scores that an evaluation has stored in the run folder."""
    return [_score(score) for score in kept_scores(run)]


def _score(score: dict[str, Any]) -> ScoreAnswer:
    name, details, n = str(score["name"]), score.get("details"), score.get("n")
    about = details.get("about") if isinstance(details, dict) else None
    metric = METRICS.get(MEASURED_TOGETHER.get(name, name))
    return ScoreAnswer(
        name=name,
        value=_number(score.get("value")),
        n=n if isinstance(n, int) else 0,
        noise_floor=_number(score.get("noise_floor")),
        about=str(about or (metric.about if metric else "")),
    )


def _number(value: Any) -> float | None:
    return number(value) if isinstance(value, int | float) else None


def training(served: ServedRun, after: int) -> TrainingAnswer:
    """The losses of a run so far, at most `MOST_ROWS` of them.

    Arguments:
        served: the run.
        after: only records of later steps than this one.
    """
    try:
        run = served.reread()
        records: list[Any] = run.metrics
        finished, steps = run.finished, run.recipe.training["steps"]
    except DisentwineError as error:
        raise CheckpointError(served.redact_paths(error)) from error
    records = [record for record in records if _is_record(record)]
    last = max((record["step"] for record in records), default=0)
    rows = _thinned([record for record in records if record["step"] > after or not after])
    return TrainingAnswer(
        finished=finished,
        running=not finished and run.running,
        step=last,
        steps=steps,
        rows=[{name: json_safe(value) for name, value in row.items()} for row in rows],
    )


def _is_record(line: Any) -> bool:
    """Whether a line of a log, which may have been edited by hand, has a kind and a step."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("kind"), str)
        and isinstance(line.get("step"), int)
    )


def _thinned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Evenly spaced records of each kind, with the first and the last: validations are few."""
    kinds = {record["kind"] for record in records}
    chosen: set[int] = set()
    for kind in kinds:
        places = np.array([i for i, record in enumerate(records) if record["kind"] == kind])
        most = min(len(places), MOST_ROWS // len(kinds))
        chosen.update(places[np.linspace(0, len(places) - 1, most).round().astype(int)].tolist())
    return [records[i] for i in sorted(chosen)]


def json_safe(value: Any) -> float | str | None:
    """A value of a log as JSON has it: numbers, or text."""
    return number(value) if isinstance(value, int | float) else str(value)
