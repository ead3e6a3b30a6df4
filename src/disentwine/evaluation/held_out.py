"""A model and the held-out images that it is measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from disentwine.core.capabilities import AppliesActions, Hierarchical, Quantizes
from disentwine.core.dataset import Dataset, random_subset
from disentwine.core.model import Model
from disentwine.core.random import fixed_noise
from disentwine.core.score import Score
from disentwine.core.types import FloatArray, IndexArray
from disentwine.data.samplers.shuffled import shuffled, validation_batches
from disentwine.errors import DataError
from disentwine.evaluation.probes import ConceptProbe, train_probe
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.metrics.active_latents import active_by_kl, active_units
from disentwine.metrics.images import reconstruction_error
from disentwine.nn.encoders import DiagonalGaussian
from disentwine.training.trainer import BatchSource

LIMIT = 5_000
"""Images that are enough for a mean; of a larger split they are a random subset, always the same."""


@runtime_checkable
class Infers(Protocol):
    """The model infers a distribution over latents from images, not only their mean."""

    def posterior(self, x: Tensor) -> Any: ...


@runtime_checkable
class Diverges(Protocol):
    """The model computes the KL divergence of its latents itself: their priors depend on samples."""

    def kl_per_latent(self, x: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class ForwardPass:
    """What one pass over the images yields.

    Arguments:
        losses: the mean of each loss term, the total first.
        reconstruction: the reconstruction error.
        latents: (n, d), none where the latents are no table of numbers.
        latent_kl: (d,) mean KL divergence of each latent from a standard normal, or in a hierarchy
            from its prior given the layer above; none for models that infer no Gaussian.
    """

    losses: dict[str, float]
    reconstruction: Score
    latents: NDArray[np.floating] | None
    latent_kl: NDArray[np.float64] | None


@dataclass
class HeldOut:
    """A model and the images that evaluators measure it on.

    Arguments:
        model: in evaluation mode after the first pass.
        dataset: where images and factors come from.
        split: the name of the split.
        indices: the images.
        step: what schedules of the loss see.
        seed: of the noise in the loss, of interventions and permutations.
        given: (n, d) latents that are inferred already; by default those of the forward pass.
        on_metric: called with the name of each metric before it is measured.
        skipped: the reason for each metric that does not apply; evaluators add to it.
        scores: what was measured so far; evaluators may use it.
    """

    model: Model
    dataset: Dataset
    split: str
    indices: IndexArray
    step: int = 0
    seed: int = 0
    given: NDArray[np.floating] | None = None
    on_metric: Callable[[str], None] | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)

    @property
    def factors(self) -> FloatArray:
        """(n, k) ground truth of the images."""
        return self.dataset.factors[self.indices]

    def add(self, scores: Sequence[Score]) -> None:
        """Keep scores, each name once for one number of images: the first is of the default."""
        known = {(score.name, score.n) for score in self.scores}
        self.scores += [score for score in scores if (score.name, score.n) not in known]

    @property
    def latents(self) -> NDArray[np.floating] | None:
        """(n, d), or none where the model's latents are no table of numbers."""
        return self.given if self.given is not None else self.forward.latents

    @property
    def latent_kl(self) -> NDArray[np.float64] | None:
        """(d,) mean KL divergence of each latent; none for models that infer no Gaussian."""
        return None if self.given is not None else self.forward.latent_kl

    @cached_property
    def probe(self) -> ConceptProbe:
        """A concept probe of the data set, trained at first use."""
        return train_probe(self.dataset, progress=None if self.on_metric is None else False)

    @cached_property
    def forward(self) -> ForwardPass:
        """One pass of all images through the model, in shuffled batches."""
        return forward_pass(self.model, self.dataset, self.indices, step=self.step, seed=self.seed)


@torch.no_grad()
def forward_pass(
    model: Model, dataset: Dataset, indices: IndexArray, *, step: int, seed: int
) -> ForwardPass:
    """Pass images through a model once.

    Batches are shuffled, because some losses penalise moments of a batch and data may be sorted.
    """
    model.eval()
    source = BatchSource.like(model, dataset)
    means = _WeightedMeans()
    latents = []
    order = shuffled(np.arange(len(indices)))
    with fixed_noise(seed):
        for chunk in validation_batches(indices[order]):
            batch = source.take(chunk, step=step)
            images = dataset.images[chunk]
            with torch.random.fork_rng():  # so that the loss is along the same noise
                kl = latent_divergences(model, batch.x)
            for name, value in model.loss(batch).means().items():
                means.add(name, value.double().cpu().numpy(), len(chunk))
            rebuilt = reconstruction_error(images, model.reconstruct(images))
            means.add(rebuilt.name, rebuilt.value, len(chunk))
            latents.append(np.asarray(model.represent(images)))
            if kl is not None and kl.shape == latents[-1].shape:
                means.add("latent kl", kl.double().mean(0).cpu().numpy(), len(chunk))
    found = means.take()
    latent_kl = found.pop("latent kl", None)
    error = Score(
        rebuilt.name, float(found.pop(rebuilt.name)), n=len(indices), details=rebuilt.details
    )
    table = np.concatenate(latents)[np.argsort(order)]
    is_table = table.ndim == 2 and np.issubdtype(table.dtype, np.floating)
    losses = {name: float(value) for name, value in found.items()}
    return ForwardPass(losses, error, table if is_table else None, latent_kl)


def latent_divergences(model: Any, x: Tensor) -> Tensor | None:
    """(n, d) KL divergence in nats of each latent's posterior from a standard normal; None where it
    is no Gaussian. In a hierarchy it is from the prior given the layer above, along sampled noise.

    Arguments:
        model: of any kind.
        x: (n, channels, height, width) in [0, 1].
    """
    if isinstance(model, Diverges):
        return model.kl_per_latent(x)
    q = model.posterior(x) if isinstance(model, Infers) else None
    if not isinstance(q, DiagonalGaussian):
        return None
    return kl_to_standard_normal(q.mean, q.log_variance)


def held_out(dataset: Dataset, limit: int) -> tuple[str, IndexArray]:
    """Name and indices of the images to evaluate on, at most `limit` of the split."""
    for name in ("test", "validation"):
        indices = random_subset(dataset.split[name], limit)
        if len(indices) > 0:
            return name, indices
    raise DataError("the test and validation splits are empty: give the data set more images")


def losses(held: HeldOut, *, prefix: str = "") -> list[Score]:
    """The mean of every loss term, the total first; or of those whose names begin with a prefix."""
    model: Any = held.model
    total = "the weighted sum that training minimises"
    if isinstance(model, AppliesActions):
        total += " while it learns images"
    return [
        Score(
            name,
            value,
            n=len(held.indices),
            details={
                "about": "a term of the loss" if name != "loss" else total,
                "split": held.split,
            },
        )
        for name, value in held.forward.losses.items()
        if name.startswith(prefix)
    ]


def reconstruction(held: HeldOut, *, at_once: bool = False) -> list[Score]:
    """The reconstruction error: the mean over batches, or of all images at once."""
    if at_once:
        images = held.dataset.images[held.indices]
        return [reconstruction_error(images, held.model.reconstruct(images))]
    found = held.forward.reconstruction
    details = {**found.details, "split": held.split}
    return [Score(found.name, found.value, n=found.n, details=details)]


def active_latents(held: HeldOut) -> list[Score]:
    """The number of active latents: by KL divergence in a hierarchy, otherwise by variance."""
    if held.latents is None:
        return []
    if isinstance(held.model, Hierarchical) and held.latent_kl is not None:
        return [active_by_kl(held.latent_kl, n=len(held.indices))]
    return [active_units(held.latents, discrete_codes=isinstance(held.model, Quantizes))]


class _WeightedMeans:
    """Means over chunks of different sizes."""

    def __init__(self) -> None:
        self.sums: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    def add(self, name: str, mean: Any, n: int) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + mean * n
        self.counts[name] = self.counts.get(name, 0) + n

    def take(self) -> dict[str, Any]:
        return {name: total / self.counts[name] for name, total in self.sums.items()}
