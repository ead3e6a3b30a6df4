"""Answers to requests: reconstructions, counterfactuals, sweeps, traversals and samples."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from disentwine.causal.concepts import concept_spec_of, counterfactual_of
from disentwine.core.capabilities import Abducts, Decodes, Generates, Intervenes, Quantizes
from disentwine.core.interventions import Counterfactual, Intervention
from disentwine.core.random import seeded
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.simulation import rerender
from disentwine.errors import UsageError, did_you_mean
from disentwine.metrics.images import reconstruction_error
from disentwine.nn.images import to_uint8
from disentwine.serve.controls import by_name, checked, number
from disentwine.serve.images import data_url, difference, thumbnail
from disentwine.serve.loaded_run import EncodedImage, LoadedRun, MissingError, decode_image
from disentwine.serve.schema import (
    DoAnswer,
    Errors,
    ImageAnswer,
    SampleAnswer,
    SweepAnswer,
    Thumbnail,
    TraverseAnswer,
)


def thumbnails(run: LoadedRun, offset: int, count: int) -> list[Thumbnail]:
    """Thumbnails of some held-out images."""
    chosen = run.display_order[offset : offset + count]
    if run.dataset is None or not len(chosen):
        return []
    return [
        Thumbnail(image=f"t-{offset + i}", thumbnail=thumbnail(pixels))
        for i, pixels in enumerate(run.dataset.images[chosen])
    ]


def describe_image(run: LoadedRun, image: EncodedImage) -> ImageAnswer:
    """An image, its reconstruction, its inferred concepts and latents, and its labels."""
    model, dataset = run.model, run.dataset
    truth = values = None
    if dataset is not None and image.index is not None and dataset.names:
        truth = by_name(dataset.names, dataset.factors[image.index])
    if isinstance(model, Intervenes):
        values = by_name(model.concept_names, image.values)
    return ImageAnswer(
        original=image.original_url,
        reconstruction=image.reconstruction_url,
        values=values,
        truth=truth,
        latents=[number(latent) for latent in image.latents.ravel()],
    )


def intervene(run: LoadedRun, image: EncodedImage, do: Mapping[str, float | str]) -> DoAnswer:
    """The counterfactual image, and the true one where a simulator can render it."""
    start = time.perf_counter()
    model = run.intervening
    found = _counterfactual(model, image, checked(concept_spec_of(model), do))
    truth = true_counterfactuals(run, image, do)
    error = None
    if truth is not None:
        error = Errors(
            model=reconstruction_error(truth, found.images[None]).value,
            unchanged=reconstruction_error(truth, image.pixels[None]).value,
        )
    return DoAnswer(
        image=data_url(found.images),
        original=image.original_url,
        reconstruction=image.reconstruction_url,
        before=by_name(model.concept_names, found.before),
        after=by_name(model.concept_names, found.after),
        truth=None if truth is None else data_url(truth[0]),
        difference=None if truth is None else data_url(difference(found.images, truth[0])),
        error=error,
        removed_edges=[edge for edge in model.graph.edges if edge[1] in do],
        affected=list(found.affected),
        outside_range=[value.name for value in found.beyond],
        milliseconds=1000 * (time.perf_counter() - start),
    )


def _counterfactual(
    model: Intervenes, image: EncodedImage, intervention: Intervention
) -> Counterfactual:
    """The counterfactual of an image, which is abducted once for all interventions on it."""
    if not isinstance(model, Abducts):
        return counterfactual_of(model, image.pixels, intervention)
    numbers = intervention.resolve(1, lambda: image.values)
    moved = model.intervene(image.exogenous, intervention)
    return Counterfactual(
        decode_image(model, moved),
        image.values,
        model.read(moved)[0].double().cpu().numpy(),
        affected=model.graph.affected_by(intervention.names),
        beyond=concept_spec_of(model).outside_range(numbers),
    )


def sweep(
    run: LoadedRun, image: EncodedImage, concept: str, do: Mapping[str, float | str], count: int
) -> SweepAnswer:
    """One concept from the least to the greatest value of its training range, others fixed."""
    model = run.intervening
    spec = concept_spec_of(model)
    known = {each.name: each for each in run.concepts}
    if concept not in known:
        raise UsageError(f"there is no concept '{concept}'. {did_you_mean(concept, known)}")
    slider = known[concept]
    values = np.linspace(slider.low, slider.high, count)
    if slider.kind != "continuous":
        steps = np.round((values - slider.low) / slider.step)
        values = np.unique(slider.low + steps * slider.step)
    interventions: dict[str, Any] = {**do, concept: values}
    images = np.repeat(image.pixels[None], len(values), axis=0)
    intervention = checked(spec, interventions)
    if isinstance(model, Abducts):  # whose `do` would warn in every sweep beyond the training range
        outputs = counterfactual_of(model, images, intervention).images
    else:
        outputs = model.do(images, interventions)
    truths = true_counterfactuals(run, image, interventions, len(values))
    return SweepAnswer(
        values=values.tolist(),
        images=urls(outputs),
        truths=None if truths is None else urls(truths),
    )


def true_counterfactuals(
    run: LoadedRun, image: EncodedImage, do: Mapping[str, Any], n: int = 1
) -> UInt8Array | None:
    """Images (n, ...) of a simulator under an intervention on a held-out image; else None."""
    dataset = run.dataset
    if run.simulator is None or dataset is None or image.index is None:
        return None
    if not set(do) <= set(dataset.names):
        return None
    return rerender(dataset, np.repeat(image.index, n), do).images


def traverse(run: LoadedRun, image: EncodedImage, latents: Mapping[str, float]) -> TraverseAnswer:
    """The image decoded from an image's latents after some of them are changed."""
    if run.latent_count is None:
        raise MissingError("this model has no decoder of latents, so they cannot be changed")
    moved, ranges = image.latents.copy(), run.latent_ranges
    for index, value in latents.items():
        if int(index) >= len(moved):
            raise UsageError(f"there is no latent {index}; the last is {len(moved) - 1}")
        if abs(value) > 1e6:
            raise UsageError(f"latent {index}: {value:g} is too far from the data")
        moved[int(index)] = value
    if isinstance(run.model, Quantizes):
        moved = moved.round().clip(*ranges.T)  # codes of a codebook are whole numbers
    return TraverseAnswer(
        image=data_url(_decoded(run, image, moved)),
        latents=[number(latent) for latent in moved],
        ranges=[(number(low), number(high)) for low, high in ranges],
    )


def _decoded(run: LoadedRun, image: EncodedImage, latents: FloatArray) -> UInt8Array:
    model = run.model
    if run.concept_std is not None and isinstance(model, Abducts) and isinstance(model, Intervenes):
        # All concepts are set, so none is affected by another.
        values = image.values + (latents - image.latents) * run.concept_std
        moved = model.intervene(
            image.exogenous, dict(zip(model.concept_names, values, strict=True))
        )
        return decode_image(model, moved)
    assert isinstance(model, Decodes)
    weight = next(run.model.parameters())
    with torch.no_grad():
        decoded = model.decode(torch.from_numpy(latents)[None].to(weight))
    output: UInt8Array = to_uint8(decoded)[0].cpu().numpy()
    return output


def sample(
    run: LoadedRun, count: int, do: Mapping[str, float | str], seed: int | None = None
) -> SampleAnswer:
    """New images, under an intervention where the model can intervene on samples."""
    model = run.model
    if not isinstance(model, Generates):
        raise MissingError("this model generates no new images")
    more = {}
    if do:
        if "do" not in inspect.signature(model.sample).parameters:
            raise MissingError("this model samples no new images under an intervention")
        checked(concept_spec_of(run.intervening), do)
        more["do"] = do
    with seeded(seed), torch.no_grad():
        outputs = to_uint8(model.sample(count, **more)).cpu().numpy()
    return SampleAnswer(images=urls(outputs))


def urls(images: Sequence[UInt8Array] | UInt8Array) -> list[str]:
    return [data_url(image) for image in images]
