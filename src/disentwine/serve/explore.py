"""What can be done with an image, answered as the page wants it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Abducts, Decodes, Generates, Intervenes, Quantizes
from disentwine.core.random import seeded
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.simulation import rerender
from disentwine.errors import UsageError, did_you_mean
from disentwine.metrics.images import reconstruction_error
from disentwine.nn.images import to_uint8
from disentwine.serve.controls import by_name, checked_do, number
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
from disentwine.serve.uploads import data_url, difference, thumbnail


def thumbnails(run: LoadedRun, offset: int, count: int) -> list[Thumbnail]:
    """Some of the held-out images, small."""
    chosen = run.display_order[offset : offset + count]
    if run.dataset is None or not len(chosen):
        return []
    return [
        Thumbnail(image=f"t-{offset + i}", thumbnail=thumbnail(pixels))
        for i, pixels in enumerate(run.dataset.images[chosen])
    ]


def describe_image(run: LoadedRun, image: EncodedImage) -> ImageAnswer:
    """An image beside its reconstruction, with what the model and the labels say of it."""
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


def intervene(run: LoadedRun, image: EncodedImage, do: Mapping[str, float]) -> DoAnswer:
    """The picture that would have been, beside the true one where a simulator can draw it."""
    start = time.perf_counter()
    model, do = run.intervening, checked_do(run.concepts, do)
    if isinstance(model, Abducts):
        moved = model.intervene(image.exogenous, do)
        output = decode_image(model, moved)
        after = model.read(moved)[0].double().cpu().numpy()
    else:
        output = model.do(image.pixels, do)
        after = np.asarray(model.concepts(output), dtype=np.float64)
    truth = true_counterfactuals(run, image, do)
    error = None
    if truth is not None:
        error = Errors(
            model=reconstruction_error(truth, output[None]).value,
            unchanged=reconstruction_error(truth, image.pixels[None]).value,
        )
    graph: Graph = model.graph
    below = {name for cause in do for name in graph.descendants(cause)} - set(do)
    return DoAnswer(
        image=data_url(output),
        original=image.original_url,
        reconstruction=image.reconstruction_url,
        before=by_name(model.concept_names, image.values),
        after=by_name(model.concept_names, after),
        truth=None if truth is None else data_url(truth[0]),
        difference=None if truth is None else data_url(difference(output, truth[0])),
        error=error,
        removed_edges=[edge for edge in graph.edges if edge[1] in do],
        affected=[name for name in graph.order if name in below],
        milliseconds=1000 * (time.perf_counter() - start),
    )


def sweep(
    run: LoadedRun, image: EncodedImage, concept: str, do: Mapping[str, float], count: int
) -> SweepAnswer:
    """One concept from the least to the greatest value of its training range, others held."""
    model = run.intervening
    held = checked_do(run.concepts, do)
    known = {each.name: each for each in run.concepts}
    if concept not in known:
        raise UsageError(
            f"there is no concept '{concept[:80]}'. {did_you_mean(concept[:80], known)}"
        )
    slider = known[concept]
    values = np.linspace(slider.low, slider.high, count)
    if slider.kind != "continuous":
        steps = np.round((values - slider.low) / slider.step)
        values = np.unique(slider.low + steps * slider.step)
    interventions: dict[str, float | FloatArray] = {**held, concept: values}
    outputs = model.do(np.repeat(image.pixels[None], len(values), axis=0), interventions)
    truths = true_counterfactuals(run, image, interventions, len(values))
    return SweepAnswer(
        values=values.tolist(),
        images=urls(outputs),
        truths=None if truths is None else urls(truths),
    )


def true_counterfactuals(
    run: LoadedRun, image: EncodedImage, do: Mapping[str, float | FloatArray], n: int = 1
) -> UInt8Array | None:
    """What the simulator draws of a held-out image under an intervention, (n, ...); else None."""
    dataset = run.dataset
    if run.simulator is None or dataset is None or image.index is None:
        return None
    if not set(do) <= set(dataset.names):
        return None
    return rerender(dataset, np.repeat(image.index, n), do).images


def traverse(run: LoadedRun, image: EncodedImage, latents: Mapping[str, float]) -> TraverseAnswer:
    """The image whose code is this one's, some of its numbers changed and all others held."""
    if run.latent_count is None:
        raise MissingError("this model has no decoder of codes, so they cannot be moved")
    moved, ranges = image.latents.copy(), run.latent_ranges
    for index, value in latents.items():
        if int(index) >= len(moved):
            raise UsageError(f"there is no code {index}; the last is {len(moved) - 1}")
        if abs(value) > 1e6:
            raise UsageError(f"code {index}: {value:g} is too far from the data")
        moved[int(index)] = value
    if isinstance(run.model, Quantizes):
        moved = moved.round().clip(*ranges.T)  # there is nothing between two names
    return TraverseAnswer(
        image=data_url(_decoded(run, image, moved)),
        latents=[number(latent) for latent in moved],
        ranges=[(number(low), number(high)) for low, high in ranges],
    )


def _decoded(run: LoadedRun, image: EncodedImage, latents: FloatArray) -> UInt8Array:
    model = run.model
    if run.movable is not None and isinstance(model, Abducts) and isinstance(model, Intervenes):
        # All concepts are set, so that none follows: what each alone looks like.
        values = image.values + (latents - image.latents) * run.movable
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
    run: LoadedRun, count: int, do: Mapping[str, float], seed: int | None = None
) -> SampleAnswer:
    """New images, from a world in which concepts are set where the model knows how."""
    model = run.model
    if not isinstance(model, Generates):
        raise MissingError("this model draws no new images")
    more = {}
    if do:
        if "do" not in inspect.signature(model.sample).parameters:
            raise MissingError("this model draws no new images under an intervention")
        more["do"] = checked_do(run.concepts, do)
    with seeded(seed), torch.no_grad():
        outputs = to_uint8(model.sample(count, **more)).cpu().numpy()
    return SampleAnswer(images=urls(outputs))


def urls(images: Sequence[UInt8Array] | UInt8Array) -> list[str]:
    return [data_url(image) for image in images]
