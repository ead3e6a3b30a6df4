"""Concepts that a probe predicts from counterfactual images."""

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
from disentwine.evaluation.counterfactuals import draw_interventions
from disentwine.evaluation.probes import ConceptProbe
from disentwine.metrics.interventions import effect_matrix

ABOUT = {
    "effect-error": "error of concepts in counterfactual images, in standard deviations of the label",
    "off-target-effect": "largest change of a concept that is no effect of the one that was set",
    "off-target-effect-causes": "largest change of a cause when its effect was set",
}


def effect_scores(
    model: Any, probe: ConceptProbe, dataset: Dataset, indices: IndexArray, *, seed: int
) -> list[Score]:
    """Intervene on each concept and predict all of them: "effect-error:<concept>" for each,
    "off-target-effect" and "off-target-effect-causes".

    The concept that was set should have the value asked for, its descendants the simulator's values,
    and all others their old values. Without a simulator, descendants are left out; they are those of
    the true graph, or else of the model's. Images and values are those of `score_counterfactuals`.
    See `metrics.effect_matrix`.

    Arguments:
        model: one that *intervenes*; there are no scores for others.
        probe: of the same data set, from `train_probe`.
        dataset: where images come from.
        indices: which images to intervene on; a few hundred labelled ones are taken.
        seed: of images and values.
    """
    labelled = indices[np.isfinite(dataset.factors[indices]).all(axis=1)]
    if not isinstance(model, Intervenes) or len(labelled) == 0:
        return []
    chosen, interventions = draw_interventions(model.concept_names, dataset, labelled, seed=seed)
    images, factors = dataset.images[chosen], dataset.factors[chosen]
    predicted, expected, predicted_truth = [], [], []
    for name, values in interventions.items():
        predicted.append(probe(model.do(images, {name: values})))
        if isinstance(dataset, Simulates):
            truth = rerender(dataset, chosen, {name: values})
            expected.append(truth.factors)
            predicted_truth.append(probe(truth.images))
        else:
            expected.append(_expected(dataset, model, factors, name, values))
    scores = effect_matrix(
        tuple(interventions),
        dataset.names,
        predicted=predicted,
        expected=expected,
        factual=factors,
        predicted_reconstruction=probe(model.reconstruct(images)),
        predicted_factual=probe(images),
        scale=probe.scale,
        predicted_truth=predicted_truth or None,
    )
    more = {"probe_error": probe.error}
    return [
        replace(s, details={**s.details, **more, "about": ABOUT[s.name.split(":")[0]]})
        for s in scores
    ]


def _expected(
    dataset: Dataset, model: Intervenes, factors: FloatArray, name: str, values: FloatArray
) -> FloatArray:
    """Expected factors without a simulator: the value asked for, and what must not change."""
    graph = dataset.graph if dataset.graph is not None else model.graph.to_networkx()
    expected = factors.copy()
    for effect in nx.descendants(graph, name):
        expected[:, column_index(dataset.names, effect)] = np.nan
    expected[:, column_index(dataset.names, name)] = values
    return expected
