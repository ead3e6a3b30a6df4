"""What can be done with an image, answered as the page wants it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Abducts, Decodes, Generates, Intervenes, Quantizes
from disentwine.core.random import drawing
from disentwine.core.types import FloatArray, UInt8Array
from disentwine.data.simulation import redraw
from disentwine.errors import UsageError, did_you_mean
from disentwine.metrics.images import reconstruction_error
from disentwine.nn.images import to_uint8
from disentwine.serve.controls import by_name, checked_do, number
from disentwine.serve.loaded_run import MissingError, Opened, Seen, paint
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


def thumbnails(opened: Opened, offset: int, count: int) -> list[Thumbnail]:
    """Some of the held-out images, small."""
    chosen = opened.display_order[offset : offset + count]
    if opened.dataset is None or not len(chosen):
        return []
    return [
        Thumbnail(image=f"t-{offset + i}", thumbnail=thumbnail(picture))
        for i, picture in enumerate(opened.dataset.images[chosen])
    ]


def look(opened: Opened, seen: Seen) -> ImageAnswer:
    """An image beside its reconstruction, with what the model and the labels say of it."""
    model, dataset = opened.model, opened.dataset
    truth = values = None
    if dataset is not None and seen.index is not None and dataset.names:
        truth = by_name(dataset.names, dataset.factors[seen.index])
    if isinstance(model, Intervenes):
        values = by_name(model.concept_names, seen.values)
    return ImageAnswer(
        original=seen.original_url,
        reconstruction=seen.reconstruction_url,
        values=values,
        truth=truth,
        codes=[number(code) for code in seen.codes.ravel()],
    )


def intervene(opened: Opened, seen: Seen, do: Mapping[str, float]) -> DoAnswer:
    """The picture that would have been, beside the true one where a simulator can draw it."""
    start = time.perf_counter()
    model, do = opened.intervening, checked_do(opened.concepts, do)
    if isinstance(model, Abducts):
        moved = model.intervene(seen.latents, do)
        picture = paint(model, moved)
        after = model.read(moved)[0].double().cpu().numpy()
    else:
        picture = model.do(seen.picture, do)
        after = np.asarray(model.concepts(picture), dtype=np.float64)
    truth = true_counterfactuals(opened, seen, do)
    error = None
    if truth is not None:
        error = Errors(
            model=reconstruction_error(truth, picture[None]).value,
            nothing=reconstruction_error(truth, seen.picture[None]).value,
        )
    graph: Graph = model.graph
    below = {name for cause in do for name in graph.descendants(cause)} - set(do)
    return DoAnswer(
        picture=data_url(picture),
        original=seen.original_url,
        reconstruction=seen.reconstruction_url,
        before=by_name(model.concept_names, seen.values),
        after=by_name(model.concept_names, after),
        truth=None if truth is None else data_url(truth[0]),
        difference=None if truth is None else data_url(difference(picture, truth[0])),
        error=error,
        cut=[edge for edge in graph.edges if edge[1] in do],
        moved=[name for name in graph.order if name in below],
        milliseconds=1000 * (time.perf_counter() - start),
    )


def sweep(
    opened: Opened, seen: Seen, concept: str, do: Mapping[str, float], count: int
) -> SweepAnswer:
    """One concept from the least to the greatest value of its training range, others held."""
    model = opened.intervening
    held = checked_do(opened.concepts, do)
    known = {each.name: each for each in opened.concepts}
    if concept not in known:
        raise UsageError(
            f"there is no concept '{concept[:80]}'. {did_you_mean(concept[:80], known)}"
        )
    slider = known[concept]
    values = np.linspace(slider.low, slider.high, count)
    if slider.kind != "continuous":
        steps = np.round((values - slider.low) / slider.step)
        values = np.unique(slider.low + steps * slider.step)
    wanted: dict[str, float | FloatArray] = {**held, concept: values}
    pictures = model.do(np.repeat(seen.picture[None], len(values), axis=0), wanted)
    truths = true_counterfactuals(opened, seen, wanted, len(values))
    return SweepAnswer(
        values=values.tolist(),
        pictures=urls(pictures),
        truths=None if truths is None else urls(truths),
    )


def true_counterfactuals(
    opened: Opened, seen: Seen, do: Mapping[str, float | FloatArray], n: int = 1
) -> UInt8Array | None:
    """What the simulator draws of a held-out image under an intervention, (n, ...); else None."""
    dataset = opened.dataset
    if opened.simulator is None or dataset is None or seen.index is None:
        return None
    if not set(do) <= set(dataset.names):
        return None
    return redraw(dataset, np.repeat(seen.index, n), do).images


def traverse(opened: Opened, seen: Seen, codes: Mapping[str, float]) -> TraverseAnswer:
    """The image whose code is this one's, some of its numbers changed and all others held."""
    if opened.latents is None:
        raise MissingError("this model has no decoder of codes, so they cannot be moved")
    moved, ranges = seen.codes.copy(), opened.code_ranges
    for index, value in codes.items():
        if int(index) >= len(moved):
            raise UsageError(f"there is no code {index}; the last is {len(moved) - 1}")
        if abs(value) > 1e6:
            raise UsageError(f"code {index}: {value:g} is too far from the data")
        moved[int(index)] = value
    if isinstance(opened.model, Quantizes):
        moved = moved.round().clip(*ranges.T)  # there is nothing between two names
    return TraverseAnswer(
        picture=data_url(_decoded(opened, seen, moved)),
        codes=[number(code) for code in moved],
        ranges=[(number(low), number(high)) for low, high in ranges],
    )


def _decoded(opened: Opened, seen: Seen, codes: FloatArray) -> UInt8Array:
    model = opened.model
    if opened.movable is not None and isinstance(model, Abducts) and isinstance(model, Intervenes):
        # All concepts are set, so that none follows: what each alone looks like.
        values = seen.values + (codes - seen.codes) * opened.movable
        moved = model.intervene(seen.latents, dict(zip(model.concept_names, values, strict=True)))
        return paint(model, moved)
    assert isinstance(model, Decodes)
    weight = next(opened.model.parameters())
    with torch.no_grad():
        decoded = model.decode(torch.from_numpy(codes)[None].to(weight))
    picture: UInt8Array = to_uint8(decoded)[0].cpu().numpy()
    return picture


def sample(
    opened: Opened, count: int, do: Mapping[str, float], seed: int | None = None
) -> SampleAnswer:
    """New images, from a world in which concepts are set where the model knows how."""
    model = opened.model
    if not isinstance(model, Generates):
        raise MissingError("this model draws no new images")
    more = {}
    if do:
        if "do" not in inspect.signature(model.sample).parameters:
            raise MissingError("this model draws no new images under an intervention")
        more["do"] = checked_do(opened.concepts, do)
    with drawing(seed), torch.no_grad():
        pictures = to_uint8(model.sample(count, **more)).cpu().numpy()
    return SampleAnswer(pictures=urls(pictures))


def urls(pictures: Sequence[UInt8Array] | UInt8Array) -> list[str]:
    return [data_url(picture) for picture in pictures]
