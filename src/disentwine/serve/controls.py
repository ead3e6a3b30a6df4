"""Concepts as sliders, latent layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from disentwine.causal.interventions import category_names, kept_labels, training_range
from disentwine.core.capabilities import Hierarchical, Intervenes
from disentwine.core.dataset import Dataset, Factor
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.errors import UsageError, did_you_mean
from disentwine.evaluation.held_out import latent_divergences
from disentwine.evaluation.latents import round_robin_by_layer
from disentwine.metrics.active_latents import active_by_kl
from disentwine.nn.images import to_unit_range
from disentwine.serve.schema import Concept, LatentLayer

STEPS = 200
"""A slider over numbers has at least so many positions."""

REACH = 10
"""Values may be so many ranges away from those that training saw."""


def describe_concepts(model: Model, dataset: Dataset | None) -> list[Concept]:
    """Name, unit, kind and training range of each concept; nothing for a model without."""
    if not isinstance(model, Intervenes):
        return []
    spec = {factor.name: factor for factor in (dataset.spec if dataset else ())}
    return [
        _describe(spec.get(name) or _remembered(model, name), *training_range(model, dataset, name))
        for name in model.concept_names
    ]


def _remembered(model: Intervenes, name: str) -> Factor:
    """What the model itself knows of a concept, where the data are not at hand."""
    categories = category_names(kept_labels(model, name))
    return Factor(name, "categorical" if categories else "continuous", values=categories)


def _describe(factor: Factor, low: float, high: float) -> Concept:
    names = list(category_names(factor.values))
    step = slider_step(low, high) if factor.kind == "continuous" else 1.0
    if factor.kind == "ordinal" and len(factor.values) > 1 and not names:
        step = float(np.diff(np.sort(np.array(factor.values, dtype=np.float64))).min())
    return Concept(
        name=factor.name,
        label=factor.name.replace("_", " "),
        unit=factor.unit,
        kind=factor.kind,
        low=low,
        high=high,
        step=step,
        values=names,
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


def checked_do(concepts: Sequence[Concept], do: Mapping[str, float]) -> dict[str, float]:
    """An intervention on known concepts, at values not absurdly far from what training saw."""
    known = {concept.name: concept for concept in concepts}
    for name, value in do.items():
        if name not in known:
            raise UsageError(f"there is no concept '{name[:80]}'. {did_you_mean(name[:80], known)}")
        if known[name].values:
            _check_category(known[name], value)
            continue
        low, high = known[name].low, known[name].high
        reach = REACH * max(high - low, 1e-6)
        if not low - reach <= value <= high + reach:
            raise UsageError(
                f"{name}: {value:g} is too far from the training range, {low:g} to {high:g}"
            )
    return dict(do)


def _check_category(concept: Concept, value: float) -> None:
    last = len(concept.values) - 1
    if value not in range(last + 1):
        raise UsageError(
            f"{concept.name}: {value:g} is no category; give its number, from 0 ({concept.values[0]}) "
            f"to {last} ({concept.values[last]})"
        )


def by_name(names: Sequence[str], values: FloatArray) -> dict[str, float | None]:
    """Values under their names; None for what is not a number."""
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def number(value: float) -> float | None:
    """A number that JSON has a word for, or None.

    >>> number(0.5), number(float("nan"))
    (0.5, None)
    """
    return float(value) if math.isfinite(value) else None


FIRST = 12
"""Sliders that are looked over at a glance."""


def describe_layers(model: Model, images: UInt8Array) -> list[LatentLayer]:
    """The layers from the top down; nothing for a model without.

    At first a fair share of the units that say something is shown; of all units, where none does or
    there are no pictures to tell.

    Arguments:
        model: in evaluation mode.
        images: (n, height, width, channels), over which divergences are averaged.
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
