"""Base of causal models: concepts, a graph, abduction, interventions and counterfactuals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from disentwine.causal.concepts import ConceptSpec, learn_graph
from disentwine.causal.constraints import NOTHING
from disentwine.causal.graph import Graph
from disentwine.core.dataset import Dataset
from disentwine.core.interventions import Counterfactual, Intervention, OutOfRange
from disentwine.core.model import Batch, Model
from disentwine.core.types import Do, FloatArray
from disentwine.errors import warn
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images, answer_in_kind, check_count

Latents = TypeVar("Latents")
Edges = tuple[tuple[str, str], ...]


class CausalModel(Model, Generic[Latents]):
    """A model whose latents hold named concepts, and a causal graph over them.

    A subclass defines abduction, the prior over latents, the latents under an intervention, and the
    decoder. The graph is learnt from the training labels under the option `knowledge`, or given by the
    option `edges`.

    Arguments:
        image_shape: (height, width, channels).
        concept_spec: name, kind, unit and training range of each concept.
        graph: over the concepts, as learnt from labels before the training.

    Attributes:
        initial_graph: that graph; `graph` may change while the model is trained.
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
            options.get("knowledge", NOTHING),
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
        """What the concepts are called."""
        return self.concept_spec.names

    @property
    def graph(self) -> Graph:
        """The causal graph over the concepts."""
        return self.initial_graph

    @abstractmethod
    def abduct(self, x: Tensor) -> Latents:
        """Latents of images, with the exogenous noise that is kept under an intervention."""

    @abstractmethod
    def prior(self, n: int) -> Latents:
        """Latents of n new images, sampled from the prior."""

    @abstractmethod
    def values(self, latents: Latents) -> Tensor:
        """The concepts (n, k) of the decoded image, standardised."""

    @abstractmethod
    def move(self, latents: Latents, moved: Mapping[int, Tensor]) -> Latents:
        """Latents after concepts are set to standardised values (n,) and their descendants recomputed."""

    @abstractmethod
    def decode_latents(self, latents: Latents) -> Tensor:
        """Images (n, channels, height, width) in [0, 1]."""

    def standardise(self, u: Tensor) -> Tensor:
        """Labels (n, k) of zero mean and unit variance; 0 where one is missing."""
        return torch.nan_to_num((u - self.mean) / self.scale)

    def labels_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Standardised labels (n, k), and 1 where a label is known, 0 where it is missing."""
        return self.standardise(batch.u), batch.u.isfinite().to(batch.x.dtype)

    def affected_by(self, moved: Iterable[int]) -> tuple[int, ...]:
        """Indices of the concepts that follow from those that are set, causes first."""
        index = self.concept_names.index
        names = self.initial_graph.affected_by(self.concept_names[i] for i in moved)
        return tuple(map(index, names))

    @accepts_images
    def concepts(self, x: Tensor) -> Tensor:
        """The concepts (n, k) inferred from images, in the labels' own units."""
        return self.read(self.abduct(x))

    def represent(self, x: Any) -> Any:
        """The concepts (n, k), standardised."""
        return answer_in_kind(self, x, lambda x, rows: self.values(self.abduct(x)))

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Images decoded from their own latents."""
        return self.decode_latents(self.abduct(x))

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """Counterfactual images under an intervention; non-descendants are unchanged.

        Arguments:
            x: images; the answer has the same form.
            do: for each concept that is set a value in its label's own unit or the name of a category,
                one an image, or a function of the old values of all images. Also by keyword.
        """
        found = self.counterfactual(x, {**(do or {}), **values})
        warn_beyond(found.beyond)
        return found.images

    def counterfactual(self, x: Any, intervention: Intervention | Do) -> Counterfactual:
        """Counterfactual images, the concepts before and after, and values outside the training range.

        Arguments:
            x: images, as for `do`.
            intervention: parsed, or values by name as for `do`.
        """
        intervention = self._parsed(intervention)
        single = np.ndim(x) != 4
        numbers = intervention.resolve(1 if single else len(x), lambda: _array(self.concepts(x)))
        before, after = [], []

        def decode(x: Tensor, rows: slice) -> Tensor:
            latents = self.abduct(x)
            moved = self._set(latents, numbers, rows)
            before.append(_array(self.read(latents)))
            after.append(_array(self.read(moved)))
            return self.decode_latents(moved)

        images = answer_in_kind(self, x, decode)
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
            do: an intervention on all or each of them, as for `do`.
        """
        check_count(n)
        latents = self.prior(n)
        intervention = self._parsed({**(do or {}), **values})
        numbers = intervention.resolve(n, lambda: _array(self.read(latents)))
        warn_beyond(self.concept_spec.outside_range(numbers))
        return self.decode_latents(self._set(latents, numbers, slice(0, n)))

    def _parsed(self, intervention: Intervention | Do) -> Intervention:
        if isinstance(intervention, Intervention):
            return intervention
        return Intervention.parse(intervention, self.concept_spec.concepts)

    def _set(self, latents: Latents, numbers: Mapping[int, FloatArray], rows: slice) -> Latents:
        """The latents of some rows after concepts are set to numbers in their own units."""
        now = self.values(latents)
        old = now * self.scale + self.mean
        moved = {}
        for i, values in numbers.items():
            new = torch.as_tensor(values[rows], dtype=old.dtype, device=old.device)
            # Conversion of units and back loses digits, which an unchanged value should not.
            standardised = (new - self.mean[i]) / self.scale[i]
            moved[i] = torch.where(new == old[:, i], now[:, i], standardised)
        return self.move(latents, moved)


def warn_beyond(beyond: tuple[OutOfRange, ...]) -> None:
    """Warn of values outside the training range, if there are any."""
    if beyond:
        values = ", ".join(map(str, beyond))
        warn(f"{values}: outside the training range, so the image is an extrapolation")


def _array(values: Any) -> FloatArray:
    """A float64 array of a tensor or array."""
    return torch.as_tensor(values).double().cpu().numpy()
