"""Sliders of concepts and latents, and checks of interventions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from disentwine.causal.concepts import Concept as CausalConcept
from disentwine.causal.concepts import ConceptSpec, concept_spec_of
from disentwine.core.capabilities import Hierarchical, Intervenes
from disentwine.core.dataset import Dataset, Factor
from disentwine.core.interventions import Intervention
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.errors import UsageError
from disentwine.evaluation.held_out import latent_divergences
from disentwine.evaluation.latents import round_robin_by_layer
from disentwine.metrics.active_latents import active_by_kl
from disentwine.nn.images import to_unit_range
from disentwine.serve.schema import Concept, LatentLayer

STEPS = 200
"""Least number of positions of a slider."""


def describe_concepts(model: Model, dataset: Dataset | None) -> list[Concept]:
    """Name, unit, kind and training range of each concept; empty for a model without."""
    if not isinstance(model, Intervenes):
        return []
    factors = {factor.name: factor for factor in (dataset.spec if dataset else ())}
    concepts = concept_spec_of(model).concepts
    return [_describe(concept, factors.get(concept.name)) for concept in concepts]


def _describe(concept: CausalConcept, factor: Factor | None) -> Concept:
    """A slider; runs of early versions do not store units and kinds, which the data set has."""
    kind = factor.kind if factor and not concept.categories else concept.kind
    low, high = concept.range
    step = slider_step(low, high) if kind in ("continuous", "ordinal") else 1.0
    if kind == "ordinal" and factor and len(factor.values) > 1:
        step = float(np.diff(np.sort(np.array(factor.values, dtype=np.float64))).min())
    return Concept(
        name=concept.name,
        label=concept.name.replace("_", " "),
        unit=concept.unit or (factor.unit if factor else ""),
        kind=kind,
        low=low,
        high=high,
        step=step,
        values=list(concept.categories),
    )


def slider_step(low: float, high: float) -> float:
    """A round number that divides a range into `STEPS` or a few times more.

    >>> slider_step(-36.0, 38.7), slider_step(0.0, 1.0)
    (0.2, 0.005)
    """
    finest = (high - low) / STEPS
    if not finest > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(finest))
    round_step = max(m for m in (1, 2, 5) if m * power <= finest * (1 + 1e-9)) * power
    return float(f"{round_step:.1g}")


def checked(spec: ConceptSpec, do: Mapping[str, Any]) -> Intervention:
    """An intervention at values that are not absurdly far from the training range."""
    intervention = Intervention.parse(do, spec.concepts)
    numbers = {i: np.atleast_1d(value) for i, value in intervention.values.items()}
    for found in spec.outside_range(numbers):
        if found.position == "absurd":
            raise UsageError(f"do: {found}: too far outside the training range")
    return intervention


def by_name(names: Sequence[str], values: FloatArray) -> dict[str, float | None]:
    """Values by name; None for what is not a finite number."""
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def number(value: float) -> float | None:
    """A finite number, or None, for JSON.

    >>> number(0.5), number(float("nan"))
    (0.5, None)
    """
    return float(value) if math.isfinite(value) else None


FIRST = 12
"""Sliders that are shown at first."""


def describe_layers(model: Model, images: UInt8Array) -> list[LatentLayer]:
    """The latent layers from the top down; empty for a model without.

    Sliders shown at first are the most active latents of each layer, or latents of all layers where
    none is active or there are no images.

    Arguments:
        model: in evaluation mode.
        images: (n, height, width, channels), over which KL divergences are averaged.
    """
    if not isinstance(model, Hierarchical):
        return []
    layers = model.latent_layers
    by_kl = active = list(range(len(layers)))
    kl = None
    if len(images):
        weight = next(model.parameters())
        with torch.no_grad(), fixed_noise(0):
            kl = latent_divergences(model, to_unit_range(torch.from_numpy(images)).to(weight))
    if kl is not None:
        mean = kl.double().mean(0).cpu().numpy()
        is_active = active_by_kl(mean, n=len(images)).details["active"]
        by_kl = np.argsort(-mean, kind="stable").tolist()
        active = [i for i in by_kl if is_active[i]] or by_kl
    shown = round_robin_by_layer(active, layers, most=FIRST)
    return [
        LatentLayer(
            name=f"layer {layer}",
            latents=[i for i in by_kl if layers[i] == layer],
            first=sum(layers[i] == layer for i in shown),
        )
        for layer in range(max(layers), 0, -1)
    ]
