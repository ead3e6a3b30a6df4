"""The concepts that a model's do-images show, read back by a network that knows no model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from disentwine.core.capabilities import Intervenes
from disentwine.core.dataset import Dataset, Simulates, column_index
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.simulation import rerender
from disentwine.evaluation.counterfactuals import draw_trials
from disentwine.evaluation.probes import Reader
from disentwine.metrics.interventions import effect_matrix

ABOUT = {
    "effect-error": "error of concepts read back from do-images, in deviations of the label",
    "effect-leak": "largest movement of a concept that is no effect of the one that was set",
    "effect-leak-causes": "largest movement of a cause when its effect was set",
}


def effect_scores(
    model: Any, reader: Reader, dataset: Dataset, indices: IndexArray, *, seed: int
) -> list[Score]:
    """Set each concept, read all of them back: "effect-error:<concept>" for each, "effect-leak" and
    "effect-leak-causes".

    The concept that was set should be read as asked, its effects as the simulator has them, all
    others as they were. Where the data set cannot be redrawn, nobody knows what effects should be and
    they are left out; what counts as an effect is then what the true graph says, or else the
    model's. Images and values are those of `score_counterfactuals`. See `metrics.effects`.

    Arguments:
        model: one that *intervenes*; nothing is answered for others.
        reader: of the same data set, from `train_concept_probe`.
        dataset: where images come from.
        indices: which images to intervene on; a few hundred of them with labels are taken.
        seed: of images and values.
    """
    labelled = indices[np.isfinite(dataset.factors[indices]).all(axis=1)]
    if not isinstance(model, Intervenes) or len(labelled) == 0:
        return []
    chosen, trials = draw_trials(model.concept_names, dataset, labelled, seed=seed)
    images, factors = dataset.images[chosen], dataset.factors[chosen]
    read, expected, read_truth = [], [], []
    for name, values in trials.items():
        read.append(reader(model.do(images, {name: values})))
        if isinstance(dataset, Simulates):
            truth = rerender(dataset, chosen, {name: values})
            expected.append(truth.factors)
            read_truth.append(reader(truth.images))
        else:
            expected.append(_expected(dataset, model, factors, name, values))
    scores = effect_matrix(
        tuple(trials),
        dataset.names,
        read=read,
        expected=expected,
        factual=factors,
        read_rebuilt=reader(model.reconstruct(images)),
        read_factual=reader(images),
        scale=reader.scale,
        read_truth=read_truth or None,
    )
    more = {"reader_error": reader.error}
    return [
        replace(s, details={**s.details, **more, "about": ABOUT[s.name.split(":")[0]]})
        for s in scores
    ]


def _expected(
    dataset: Dataset, model: Intervenes, factors: FloatArray, name: str, values: FloatArray
) -> FloatArray:
    """What is known without a simulator: what was asked for, and what must not move."""
    graph = dataset.graph if dataset.graph is not None else model.graph.to_networkx()
    expected = factors.copy()
    for effect in nx.descendants(graph, name):
        expected[:, column_index(dataset.names, effect)] = np.nan
    expected[:, column_index(dataset.names, name)] = values
    return expected
