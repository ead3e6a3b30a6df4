"""Base of causal models: concepts, a graph, abduction, interventions and counterfactuals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from disentwine.causal.concepts import ConceptSpec
from disentwine.causal.constraints import NO_KNOWLEDGE
from disentwine.causal.discovery import learn_graph
from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.core.interventions import Counterfactual, Intervention, OutOfRange
from disentwine.core.model import Batch, Model
from disentwine.core.types import Do, FloatArray
from disentwine.errors import warn
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images, check_count, map_images

Latents = TypeVar("Latents")
Edges = tuple[tuple[str, str], ...]


class CausalModel(Model, Generic[Latents]):
    """A model with named concepts among its latents, and a causal graph over them.

    Subclasses define abduction (`abduct`), the prior over latents, the propagation of interventions to
    descendants, and the decoder. The graph is learnt from the training labels, with the option
    `knowledge`, or given by the option `edges`.

    Arguments:
        image_shape: (height, width, channels).
        concept_spec: name, kind, unit and training range of each concept.
        graph: causal graph over the concepts.

    Attributes:
        initial_graph: the argument `graph`, as the property `graph` may change during training.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape", "concept_spec", "graph")
    mean: Tensor
    scale: Tensor

    def __init__(self, image_shape: ImageShape, concept_spec: ConceptSpec, graph: Graph) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.concept_spec = concept_spec
        self.initial_graph = graph
        concepts = concept_spec.concepts
        self.register_buffer("mean", torch.tensor([concept.mean for concept in concepts]))
        self.register_buffer("scale", torch.tensor([concept.std for concept in concepts]))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        concept_spec = ConceptSpec.from_dataset(dataset, needed_by=cls.__name__)
        graph = learn_graph(
            dataset,
            options.get("edges"),
            options.get("knowledge", NO_KNOWLEDGE),
            options.get("discovery", "independence"),
        )
        return super().data_arguments(dataset, options) | {
            "concept_spec": concept_spec,
            "graph": graph,
        }

    def fixed_arguments(self) -> dict[str, Any]:
        fixed = super().fixed_arguments()
        return fixed | {"graph": self.initial_graph.to_json()} if "graph" in fixed else fixed

    @property
    def concept_names(self) -> tuple[str, ...]:
        """Names of the concepts."""
        return self.concept_spec.names

    @property
    def graph(self) -> Graph:
        """The causal graph over the concepts."""
        return self.initial_graph

    @abstractmethod
    def abduct(self, x: Tensor) -> Latents:
        """Latents of images, including the exogenous noise that interventions keep."""

    @abstractmethod
    def prior(self, n: int) -> Latents:
        """Latents of n images, sampled from the prior."""

    @abstractmethod
    def values(self, latents: Latents) -> Tensor:
        """The concepts (n, k) of the decoded image, standardised."""

    @abstractmethod
    def propagate(self, latents: Latents, interventions: Mapping[int, Tensor]) -> Latents:
        """Latents with concepts set to standardised values (n,) and their descendants recomputed."""

    @abstractmethod
    def decode_latents(self, latents: Latents) -> Tensor:
        """Images (n, channels, height, width) in [0, 1]."""

    def standardise(self, u: Tensor) -> Tensor:
        """Standardised labels (n, k); 0 where a label is missing."""
        return torch.nan_to_num((u - self.mean) / self.scale)

    def labels_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Standardised labels (n, k), and a mask (n, k): 1 where a label is known, 0 where it is missing."""
        return self.standardise(batch.u), batch.u.isfinite().to(batch.x.dtype)

    def affected_by(self, interventions: Iterable[int]) -> tuple[int, ...]:
        """Indices of the descendants of the intervened concepts, causes first."""
        index = self.concept_names.index
        names = self.initial_graph.affected_by(self.concept_names[i] for i in interventions)
        return tuple(map(index, names))

    @accepts_images
    def concepts(self, x: Tensor) -> Tensor:
        """The concepts (n, k) inferred from images, in the labels' own units."""
        return self.read(self.abduct(x))

    def represent(self, x: Any) -> Any:
        """Standardised concepts (n, k) inferred from images."""
        return map_images(self, x, lambda x, rows: self.values(self.abduct(x)))

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Reconstruction of each image, in the format of the input."""
        return self.decode_latents(self.abduct(x))

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """Counterfactual images under an intervention; non-descendants are unchanged.

        Arguments:
            x: images; the result has the same format.
            do: by concept name, a value in the label's unit or a category name, an array with one
                value per image, or a function of the old values of all images.
            values: the same by keyword.
        """
        counterfactual = self.counterfactual(x, {**(do or {}), **values})
        warn_extrapolation(counterfactual.beyond)
        return counterfactual.images

    def counterfactual(self, x: Any, intervention: Intervention | Do) -> Counterfactual:
        """Counterfactual images, the concepts before and after, and values outside the training range.

        Arguments:
            x: images, as for `do`.
            intervention: a parsed intervention, or values by name as for `do`.
        """
        intervention = self._parsed(intervention)
        single = np.ndim(x) != 4
        numbers = intervention.resolve(1 if single else len(x), lambda: _array(self.concepts(x)))
        before, after = [], []

        def decode(x: Tensor, rows: slice) -> Tensor:
            latents = self.abduct(x)
            latents_after = self._set(latents, numbers, rows)
            before.append(_array(self.read(latents)))
            after.append(_array(self.read(latents_after)))
            return self.decode_latents(latents_after)

        images = map_images(self, x, decode)
        row = 0 if single else slice(None)
        return Counterfactual(
            images,
            np.concatenate(before)[row],
            np.concatenate(after)[row],
            affected=self.graph.affected_by(intervention.names),
            beyond=self.concept_spec.outside_range(numbers),
        )

    @torch.no_grad()
    def intervene(self, latents: Latents, intervention: Intervention | Do) -> Latents:
        """Abducted latents under an intervention; numbers between categories are valid."""
        numbers = self._parsed(intervention).resolve(
            len(self.values(latents)), lambda: _array(self.read(latents)), between_categories=True
        )
        return self._set(latents, numbers, slice(None))

    @torch.no_grad()
    def read(self, latents: Latents) -> Tensor:
        """The concepts (n, k) of the decoded image, in the labels' own units."""
        return self.values(latents) * self.scale + self.mean

    @torch.no_grad()
    def sample(self, n: int, do: Do | None = None, **values: Any) -> Tensor:
        """New images, (n, channels, height, width) in [0, 1], sampled from the prior.

        Arguments:
            n: number of images.
            do, values: an intervention on the images, as for `do`.
        """
        check_count(n)
        latents = self.prior(n)
        intervention = self._parsed({**(do or {}), **values})
        numbers = intervention.resolve(n, lambda: _array(self.read(latents)))
        warn_extrapolation(self.concept_spec.outside_range(numbers))
        return self.decode_latents(self._set(latents, numbers, slice(0, n)))

    def _parsed(self, intervention: Intervention | Do) -> Intervention:
        if isinstance(intervention, Intervention):
            return intervention
        return Intervention.parse(intervention, self.concept_spec.concepts)

    def _set(self, latents: Latents, numbers: Mapping[int, FloatArray], rows: slice) -> Latents:
        """Latents of some rows with concepts set to numbers in the labels' units."""
        before = self.values(latents)
        old = before * self.scale + self.mean
        interventions = {}
        for i, values in numbers.items():
            new = torch.as_tensor(values[rows], dtype=old.dtype, device=old.device)
            # Values equal to the old ones keep the exact latents, as unit conversion has rounding errors.
            standardised = (new - self.mean[i]) / self.scale[i]
            interventions[i] = torch.where(new == old[:, i], before[:, i], standardised)
        return self.propagate(latents, interventions)


def warn_extrapolation(beyond: tuple[OutOfRange, ...]) -> None:
    """Warn about values outside the training range."""
    if beyond:
        values = ", ".join(map(str, beyond))
        warn(f"{values}: outside the training range, so the image is an extrapolation")


def _array(values: Any) -> FloatArray:
    """A float64 array of a tensor or array."""
    return torch.as_tensor(values).double().cpu().numpy()
