"""Effects of interventions on all concepts, measured in images by a concept probe."""

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
    "effect-error": "error of concepts that a probe finds in counterfactual images, in standard deviations",
    "effect-leak": "largest change of a concept that is no effect of the one that is set",
    "effect-leak-causes": "largest change of a cause when its effect is set",
}


def effect_scores(
    model: Any, reader: Reader, dataset: Dataset, indices: IndexArray, *, seed: int
) -> list[Score]:
    """Errors and off-target changes of all concepts under interventions on each, by a concept probe.

    In the counterfactual images the probe should find the concept that is set at its value, its effects
    as in the simulator, and all others unchanged. Without a simulator the effects are not known and are
    left out; they are then those of the true graph, or of the model's graph where that is unknown.
    Images and values are those of `score_counterfactuals`. See `metrics.interventions`.

    Arguments:
        model: one that *intervenes*; empty for others.
        reader: a probe for the same data set, from `train_concept_probe`.
        dataset: of the images.
        indices: images to intervene on; a few hundred of them with labels are used.
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
    """Expected concepts without a simulator: the value that is set, and unchanged non-descendants."""
    graph = dataset.graph if dataset.graph is not None else model.graph.to_networkx()
    expected = factors.copy()
    for effect in nx.descendants(graph, name):
        expected[:, column_index(dataset.names, effect)] = np.nan
    expected[:, column_index(dataset.names, name)] = values
    return expected
