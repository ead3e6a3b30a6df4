"""What models with causal concepts share: labels, a learnt graph, and the do-operation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from disentwine.causal.discovery import discover
from disentwine.causal.graph import Graph
from disentwine.contracts.dataset import Dataset, Do, column_index
from disentwine.contracts.model import Model
from disentwine.errors import DataError, UsageError
from disentwine.nn.convolutional import ImageShape
from disentwine.nn.pictures import accepts_pictures, answer_in_kind

Latents = TypeVar("Latents")
Edges = tuple[tuple[str, str], ...]


class CausalModel(Model, Generic[Latents]):
    """A model whose code holds named concepts, and a graph of what causes what.

    A subclass says how an image's latents are abducted, what they become when concepts are
    moved, and how they are painted. The graph is learnt from the labels of the training split, or
    follows from `edges` when they are known.

    Arguments:
        image_shape: (height, width, channels).
        concept_names: what they are called.
        label_mean: (k,) of the training labels, in their own units.
        label_scale: (k,) their standard deviations.
        learnt_graph: as `Graph.to_json` writes it.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = (
        "image_shape",
        "concept_names",
        "label_mean",
        "label_scale",
        "learnt_graph",
    )
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        *,
        image_shape: ImageShape,
        concept_names: tuple[str, ...],
        label_mean: tuple[float, ...],
        label_scale: tuple[float, ...],
        learnt_graph: dict[str, Any],
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.label_mean, self.label_scale = label_mean, label_scale
        self.learnt_graph = learnt_graph
        self.concept_names = concept_names
        self.start = Graph.from_json(learnt_graph)
        self.register_buffer("mean", torch.tensor(label_mean))
        self.register_buffer("scale", torch.tensor(label_scale))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        labels = dataset.factors[dataset.split["train"]]
        labelled = labels[np.isfinite(labels).all(axis=1)]
        if not dataset.names or len(labelled) == 0:
            raise DataError(f"{cls.__name__} learns concepts from labels: give the data set some")
        edges = options.get("edges")
        graph = (
            Graph.from_edges(dataset.names, edges)
            if edges is not None
            else discover(labelled, dataset.names)
        )
        return {
            "image_shape": dataset.image_shape,
            "concept_names": dataset.names,
            "label_mean": tuple(np.nanmean(labels, axis=0).tolist()),
            "label_scale": tuple(np.nanstd(labels, axis=0).tolist()),
            "learnt_graph": graph.to_json(),
        }

    @property
    def graph(self) -> Graph:
        """What causes what."""
        return self.start

    @abstractmethod
    def abduct(self, x: Tensor) -> Latents:
        """All that is inferred from images and kept under an intervention."""

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

    @accepts_pictures
    def concepts(self, x: Tensor) -> Tensor:
        """The value of each concept in each image, (n, k), in the labels' own units."""
        return self.values(self.abduct(x)) * self.scale + self.mean

    def represent(self, x: Any) -> Any:
        """The concepts, standardised, (n, k)."""
        return answer_in_kind(self, x, lambda x, rows: self.values(self.abduct(x)))

    @accepts_pictures
    def reconstruct(self, x: Tensor) -> Tensor:
        """Each image painted from its own latents."""
        return self.paint(self.abduct(x))

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """The picture that would have been, had concepts been different; causes stay as they were.

        Arguments:
            x: images, answered in the form they are given.
            do: for each concept a value in its label's own unit, a value an image, or a function of
                the old value; more can be given by keyword.
        """
        wanted = {**(do or {}), **values}
        places = {column_index(self.concept_names, name): value for name, value in wanted.items()}

        def answer(x: Tensor, rows: slice) -> Tensor:
            latents = self.abduct(x)
            old = self.values(latents) * self.scale + self.mean
            moved = {
                i: (self._resolve(value, old[:, i], rows, self.concept_names[i]) - self.mean[i])
                / self.scale[i]
                for i, value in places.items()
            }
            return self.paint(self.move(latents, moved))

        return answer_in_kind(self, x, answer)

    @staticmethod
    def _resolve(value: Any, old: Tensor, rows: slice, name: str) -> Tensor:
        """The new value of each image, in the label's own unit."""
        if callable(value):
            value, rows = value(old.cpu().double().numpy()), slice(None)
        new = torch.as_tensor(np.asarray(value), dtype=old.dtype, device=old.device)
        new = new[rows] if new.ndim else new.expand(len(old))
        if new.shape != old.shape:
            raise UsageError(f"do: '{name}' needs one value, or one an image")
        if not new.isfinite().all():
            raise UsageError(f"do: '{name}' must be a finite number, got {value}")
        return new
