"""What models with causal concepts share: labels, a learnt graph, and the do-operation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from disentwine.causal.concepts import label_arguments, learn_graph
from disentwine.causal.constraints import NOTHING
from disentwine.causal.graph import Graph
from disentwine.causal.interventions import Intervention, LabelValues, label_values
from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, Model
from disentwine.core.types import Do
from disentwine.nn.encoders import ImageShape
from disentwine.nn.images import accepts_images, answer_in_kind, check_count

Latents = TypeVar("Latents")
Edges = tuple[tuple[str, str], ...]


class CausalModel(Model, Generic[Latents]):
    """A model whose code holds named concepts, and a graph of what causes what.

    A subclass says how an image's latents are abducted or drawn anew, what they become when concepts
    are moved, and how they are painted. The graph is learnt from the labels of the training split,
    starting from the option `knowledge`, or follows from `edges` when all of them are known.

    Arguments:
        image_shape: (height, width, channels).
        concept_names: what they are called.
        label_mean: (k,) of the training labels, in their own units.
        label_scale: (k,) their standard deviations.
        learnt_graph: as `Graph.to_json` writes it.
        label_values: of each concept the names of its categories, or its least and greatest training
            label; not known of runs that are older than this argument.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = (
        "image_shape",
        "concept_names",
        "label_mean",
        "label_scale",
        "learnt_graph",
        "label_values",
    )
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        image_shape: ImageShape,
        *,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        learnt_graph: dict[str, Any],
        label_values: LabelValues = (),
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.label_mean, self.label_scale = label_mean, label_scale
        self.learnt_graph = learnt_graph
        self.label_values = label_values
        self.concept_names = concept_names
        self.start = Graph.from_json(learnt_graph)
        self.register_buffer("mean", torch.tensor(label_mean))
        self.register_buffer("scale", torch.tensor(label_scale))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        fixed = label_arguments(dataset, needed_by=cls.__name__)
        graph = learn_graph(
            dataset,
            options.get("edges"),
            options.get("knowledge", NOTHING),
            options.get("discovery", "independence"),
        )
        return {**fixed, "learnt_graph": graph.to_json(), "label_values": label_values(dataset)}

    @property
    def graph(self) -> Graph:
        """What causes what."""
        return self.start

    @abstractmethod
    def abduct(self, x: Tensor) -> Latents:
        """All that is inferred from images and kept under an intervention."""

    @abstractmethod
    def prior(self, n: int) -> Latents:
        """All that there is to infer from so many images, drawn anew."""

    @abstractmethod
    def values(self, latents: Latents) -> Tensor:
        """The concepts that the painted image shows, (n, k), standardised."""

    @abstractmethod
    def move(self, latents: Latents, moved: Mapping[int, Tensor]) -> Latents:
        """The latents once concepts are set to standardised values (n,), their effects following."""

    @abstractmethod
    def paint(self, latents: Latents) -> Tensor:
        """Images (n, channels, height, width) in [0, 1]."""

    def standardise(self, u: Tensor) -> Tensor:
        """Labels (n, k) on the scale of the code; 0 where one is missing."""
        return torch.nan_to_num((u - self.mean) / self.scale)

    def labels_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Standardised labels (n, k), and 1 where one is known, 0 where it is missing."""
        return self.standardise(batch.u), batch.u.isfinite().to(batch.x.dtype)

    def affected_by(self, moved: Iterable[int]) -> tuple[int, ...]:
        """The concepts that follow when some are set, causes before their effects."""
        index = self.concept_names.index
        names = self.start.affected_by(self.concept_names[i] for i in moved)
        return tuple(map(index, names))

    @accepts_images
    def concepts(self, x: Tensor) -> Tensor:
        """The value of each concept in each image, (n, k), in the labels' own units."""
        return self.read(self.abduct(x))

    def represent(self, x: Any) -> Any:
        """The concepts, standardised, (n, k)."""
        return answer_in_kind(self, x, lambda x, rows: self.values(self.abduct(x)))

    @accepts_images
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image painted from its own latents."""
        return self.paint(self.abduct(x))

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """The picture that would have been, had concepts been different; causes stay as they were.

        Arguments:
            x: images, answered in the form they are given.
            do: for each concept a value in its label's own unit or the name of a category, one an image,
                or a function of the old values of all images; more can be given by keyword.
        """
        n = len(x) if np.ndim(x) == 4 else 1
        wanted = self._wanted({**(do or {}), **values}, n, lambda: self.concepts(x))
        wanted.check_range()
        return answer_in_kind(
            self, x, lambda x, rows: self.paint(self._set(self.abduct(x), wanted, rows))
        )

    @torch.no_grad()
    def intervene(self, latents: Latents, do: Do) -> Latents:
        """What `do` paints, for latents that were abducted before: the same values can be given, and
        numbers between categories, as codes have them."""
        wanted = self._wanted(do, len(self.values(latents)), lambda: self.read(latents))
        return self._set(latents, wanted, slice(None))

    @torch.no_grad()
    def read(self, latents: Latents) -> Tensor:
        """The concepts that the painted image shows, (n, k), in the labels' own units."""
        return self.values(latents) * self.scale + self.mean

    @torch.no_grad()
    def sample(self, n: int, do: Do | None = None, **values: Any) -> Tensor:
        """New images, (n, channels, height, width) in [0, 1], drawn from the prior.

        Arguments:
            n: how many.
            do: what concepts are set to in all or each of them, as for `do`; their effects follow.
        """
        check_count(n)
        latents = self.prior(n)
        wanted = self._wanted({**(do or {}), **values}, n, lambda: self.read(latents))
        wanted.check_range()
        return self.paint(self._set(latents, wanted, slice(0, n)))

    def _wanted(self, do: Mapping[str, Any], n: int, read: Callable[[], Any]) -> Intervention:
        return Intervention(do, n, names=self.concept_names, seen=self.label_values, read=read)

    def _set(self, latents: Latents, wanted: Intervention, rows: slice) -> Latents:
        """The latents of some rows once concepts have the values that are wanted."""
        now = self.values(latents)
        old = now * self.scale + self.mean
        moved = {}
        for i, numbers in wanted.numbers.items():
            new = torch.as_tensor(numbers[rows], dtype=old.dtype, device=old.device)
            # There and back between units costs digits, which setting a fact should not.
            standardised = (new - self.mean[i]) / self.scale[i]
            moved[i] = torch.where(new == old[:, i], now[:, i], standardised)
        return self.move(latents, moved)
