"""A loaded run, and the latents of images that were requested."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from disentwine.causal.concepts import ConceptSpec
from disentwine.core.capabilities import Abducts, Decodes, Hierarchical, Intervenes, Quantizes
from disentwine.core.dataset import Dataset, Simulates, display_order
from disentwine.core.model import Model
from disentwine.core.types import FloatArray, IndexArray, UInt8Array
from disentwine.errors import UsageError
from disentwine.nn.images import to_uint8, to_unit_range
from disentwine.serve.controls import describe_concepts, describe_layers
from disentwine.serve.images import data_url
from disentwine.serve.schema import Concept, LatentLayer

CACHED = 64
"""Most images whose latents and reconstructions are cached."""

SAMPLED = 128
"""Test images from which ranges and activity of latents are estimated."""


class MissingError(LookupError):
    """There is no such run, image or capability."""


class LoadedRun:
    """A model with the weights of one checkpoint, and the data it was trained on.

    Arguments:
        model: in evaluation mode.
        dataset: None where the data are not available; then images have to be uploaded.
        step: of the checkpoint.
        unavailable: why the data are not available.
    """

    def __init__(
        self, model: Model, dataset: Dataset | None, step: int, *, unavailable: str = ""
    ) -> None:
        self.model = model
        self.dataset = dataset
        self.step = step
        self.unavailable = unavailable
        self._encoded: OrderedDict[str, EncodedImage] = OrderedDict()

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels) of its images."""
        shape: Any = self.model.image_shape
        height, width, channels = shape
        return height, width, channels

    @cached_property
    def display_order(self) -> IndexArray:
        """Indices of held-out images, in a random order that is always the same."""
        return (
            np.zeros(0, dtype=np.int64)
            if self.dataset is None
            else display_order(self.dataset.split)
        )

    @cached_property
    def concepts(self) -> list[Concept]:
        """Its sliders."""
        return describe_concepts(self.model, self.dataset)

    @property
    def intervening(self) -> Intervenes:
        """The model, if it has concepts."""
        if not isinstance(self.model, Intervenes):
            raise MissingError("this model has no concepts; explore its latents with traverse")
        return self.model

    @property
    def simulator(self) -> Simulates | None:
        """The data set, if it can simulate interventions."""
        return self.dataset if isinstance(self.dataset, Simulates) else None

    @cached_property
    def latent_ranges(self) -> FloatArray:
        """(d, 2) range of each latent, for 98 % of test images; of codes all indices of the codebook."""
        if isinstance(self.model, Quantizes):
            return np.tile([0.0, self.model.codebook_size - 1.0], (self.latent_count or 0, 1))
        images = self._sample_images
        if not len(images):
            return np.tile([-3.0, 3.0], (self.latent_count or 0, 1))
        latents = self.model.represent(images)
        return np.quantile(np.asarray(latents, dtype=np.float64), [0.01, 0.99], axis=0).T

    @cached_property
    def latent_layers(self) -> list[LatentLayer]:
        """The latent layers, for models that have several."""
        return describe_layers(self.model, self._sample_images)

    @property
    def _sample_images(self) -> UInt8Array:
        """Some test images; none where the data are not available."""
        if self.dataset is None:
            return np.zeros((0, *self.shape), dtype=np.uint8)
        return self.dataset.images[self.display_order[:SAMPLED]]

    @cached_property
    def latent_count(self) -> int | None:
        """Number of latents that can be changed; None for models that cannot decode them."""
        if self.concept_std is None and not isinstance(self.model, Decodes):
            return None
        return len(self.model.represent(np.zeros(self.shape, dtype=np.uint8)))

    @property
    def concept_std(self) -> FloatArray | None:
        """(k,) standard deviation of each concept, for models whose latents are standardised concepts."""
        spec: ConceptSpec | None = getattr(self.model, "concept_spec", None)
        if spec is None or not isinstance(self.model, Abducts):
            return None
        return np.array([concept.std for concept in spec.concepts])

    @property
    def latent_names(self) -> list[str]:
        """A name for each latent."""
        if self.concept_std is not None and isinstance(self.model, Intervenes):
            return list(self.model.concept_names)
        if isinstance(self.model, Hierarchical):
            return [f"layer {layer}, z{i}" for i, layer in enumerate(self.model.latent_layers)]
        return [f"z{i}" for i in range(self.latent_count or 0)]

    def encode(
        self, image: str, upload: Callable[[str, tuple[int, int, int]], UInt8Array]
    ) -> EncodedImage:
        """The latents of an image, inferred at its first request.

        Arguments:
            image: "t-17" for a held-out image, "u-..." for an uploaded one.
            upload: reads the latter at a size, or raises `KeyError`.
        """
        if image in self._encoded:
            self._encoded.move_to_end(image)
            return self._encoded[image]
        encoded = self._encode_new(image, upload)
        self._encoded[image] = encoded
        if len(self._encoded) > CACHED:
            self._encoded.popitem(last=False)
        return encoded

    def _encode_new(
        self, image: str, upload: Callable[[str, tuple[int, int, int]], UInt8Array]
    ) -> EncodedImage:
        kind, _, name = image.partition("-")
        if kind == "u":
            try:
                return EncodedImage(self.model, upload(image, self.shape))
            except KeyError:
                raise MissingError("that image is no longer stored; upload it again") from None
        number = int(name) if name.isascii() and name.isdecimal() and len(name) < 12 else -1
        if self.dataset is None:
            why = f" ({self.unavailable})" if self.unavailable else ""
            raise MissingError(f"this run's data are not available; upload an image{why}")
        if kind != "t" or not 0 <= number < len(self.display_order):
            raise MissingError(
                f"there is no such image; choose from t-0 to t-{len(self.display_order) - 1}"
            )
        index = int(self.display_order[number])
        return EncodedImage(self.model, self.dataset.images[index], index)


class EncodedImage:
    """An image and what a model infers from it.

    Arguments:
        model: that encodes it.
        pixels: (height, width, channels).
        index: in the data set; None for an uploaded image.
    """

    def __init__(self, model: Model, pixels: UInt8Array, index: int | None = None) -> None:
        self.model = model
        self.pixels = pixels
        self.index = index
        self.after_actions: dict[tuple[str, ...], str] = {}

    @cached_property
    def exogenous(self) -> Any:
        """Latents with the exogenous noise that is kept under an intervention, for models that *abduct*."""
        assert isinstance(self.model, Abducts)
        weight = next(self.model.parameters())
        with torch.no_grad():
            return self.model.abduct(to_unit_range(torch.from_numpy(self.pixels)[None]).to(weight))

    @cached_property
    def latents(self) -> FloatArray:
        """(d,) its representation."""
        return np.asarray(self.model.represent(self.pixels), dtype=np.float64)

    @cached_property
    def values(self) -> FloatArray:
        """(k,) the inferred concepts, in their own units."""
        if isinstance(self.model, Abducts):
            return self.model.read(self.exogenous)[0].double().cpu().numpy()
        if not isinstance(self.model, Intervenes):
            raise UsageError("this model has no concepts")
        return np.asarray(self.model.concepts(self.pixels), dtype=np.float64)

    @cached_property
    def reconstruction(self) -> UInt8Array:
        if isinstance(self.model, Abducts):
            return decode_image(self.model, self.exogenous)
        output: UInt8Array = self.model.reconstruct(self.pixels)
        return output

    @cached_property
    def original_url(self) -> str:
        return data_url(self.pixels)

    @cached_property
    def reconstruction_url(self) -> str:
        return data_url(self.reconstruction)


def decode_image(model: Abducts, latents: Any) -> UInt8Array:
    """The image decoded from latents of one image."""
    with torch.no_grad():
        output: UInt8Array = to_uint8(model.decode_latents(latents))[0].cpu().numpy()
    return output
