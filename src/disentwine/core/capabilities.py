"""Capabilities: protocols of optional methods of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from disentwine.core.interventions import Intervention
from disentwine.core.model import Batch, Losses
from disentwine.core.types import Do


@runtime_checkable
class Decodes(Protocol):
    """Latents can be decoded into images, as latent traversals need."""

    def decode(self, latents: Tensor, /) -> Tensor:
        """Images (n, channels, height, width) in [0, 1] decoded from latents (n, d)."""
        ...


@runtime_checkable
class Quantizes(Protocol):
    """Latents are categorical: indices into codebooks, without an order.

    Attributes:
        codebook_size: number of codes in each codebook.
    """

    @property
    def codebook_size(self) -> int: ...

    def indices(self, x: Tensor) -> Tensor:
        """Code indices (n, d) of images, as integers."""
        ...


@runtime_checkable
class Generates(Protocol):
    """New images can be sampled."""

    def sample(self, n: int) -> Tensor:
        """Images (n, channels, height, width) in [0, 1], sampled from the model's prior."""
        ...


@runtime_checkable
class Intervenes(Protocol):
    """Interventions on concepts: their descendants are recomputed."""

    image_shape: tuple[int, int, int]
    concept_names: tuple[str, ...]

    def reconstruct(self, x: Any) -> Any: ...

    def concepts(self, x: Any) -> Any:
        """The value of each concept in each image, (n, k), in the labels' own units."""
        ...

    @property
    def graph(self) -> Any:
        """The causal graph of the concepts, a `causal.graph.Graph`."""
        ...

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """Counterfactual images under an intervention."""
        ...


@runtime_checkable
class Abducts(Protocol):
    """Abduction separate from intervention, so that one abduction serves many interventions."""

    def abduct(self, x: Tensor) -> Any:
        """The latents inferred from images, exogenous noise included."""
        ...

    def intervene(self, latents: Any, intervention: Intervention | Do) -> Any:
        """The latents under an intervention, in the labels' own units, with descendants recomputed."""
        ...

    def read(self, latents: Any) -> Tensor:
        """The value of each concept, (n, k), in the labels' own units."""
        ...

    def decode_latents(self, latents: Any) -> Tensor:
        """Images (n, channels, height, width) in [0, 1]."""
        ...


@runtime_checkable
class AppliesActions(Protocol):
    """Actions can be applied to an image, and retrieved from a pair of images."""

    image_shape: tuple[int, int, int]
    actions: tuple[str, ...]

    def reconstruct(self, x: Any) -> Any: ...

    def apply(self, x: Any, action: Any, *, times: int = 1) -> Any:
        """Images after one action or a sequence of actions, given by name or index."""
        ...

    def retrieve(self, x: Any, y: Any) -> Any:
        """Posterior probabilities (n, actions) of the action between images x and y."""
        ...


@runtime_checkable
class EstimatesLikelihood(Protocol):
    """The likelihood of images can be estimated by importance sampling."""

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        """Log importance weights log p(x, z) - log q(z|x), (samples, n), with z sampled from q."""
        ...


class DiscriminatorTraining(NamedTuple):
    """Optimizer settings of a discriminator, which has its own Adam.

    Arguments:
        learning_rate: initial learning rate; it follows the model's learning-rate schedule.
        betas: Adam's betas.
        updates: discriminator updates per update of the model.
    """

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    updates: int = 1


@runtime_checkable
class Adversarial(Protocol):
    """The model is trained against a discriminator: the submodule `discriminator` with its own loss.

    `loss` trains all other parameters and `discriminator_loss` trains the discriminator alone, so
    neither loss needs to detach anything. Losses of adversaries do not rank checkpoints, so training
    keeps the last weights, not those of the lowest validation loss.
    """

    discriminator_training: DiscriminatorTraining

    def discriminator_loss(self, batch: Batch) -> Losses:
        """Named loss terms of the discriminator, on a separate batch."""
        ...


@runtime_checkable
class MatchesActions(Protocol):
    """Latent actions can be matched with named actions."""

    @property
    def latent_actions(self) -> bool:
        """Whether the model is trained without action labels."""
        ...

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Match latent actions with names, given pairs of images and the action index (n,) of each."""
        ...


@runtime_checkable
class UpdatesItself(Protocol):
    """The model has state updated without gradients, such as codebooks with moving averages."""

    def after_update(self) -> None:
        """Called after each optimizer step."""
        ...


@runtime_checkable
class ResetsLatents(Protocol):
    """Inactive latents (posterior collapse) can be re-initialised."""

    def reset_inactive_latents(self, x: Tensor, *, most: int | None = None) -> tuple[int, ...]:
        """Re-initialise at most `most` of the latents that are inactive on images (n, channels, height,
        width); returns their indices."""
        ...


@runtime_checkable
class LogsScalars(Protocol):
    """The model logs scalars beside its losses."""

    def log_scalars(self) -> Mapping[str, float]:
        """Current values by name, such as "A[light->shadow]"."""
        ...


@runtime_checkable
class Hierarchical(Protocol):
    """The latents form several stochastic layers."""

    @property
    def latent_layers(self) -> tuple[int, ...]:
        """Layer of each latent dimension; layer 1 is next to the image."""
        ...


CAPABILITIES: dict[str, type] = {
    "decodes": Decodes,
    "quantizes": Quantizes,
    "generates": Generates,
    "intervenes": Intervenes,
    "transitions": AppliesActions,
    "scores": EstimatesLikelihood,
    "hierarchical": Hierarchical,
    "adversarial": Adversarial,
    "matches actions": MatchesActions,
    "updates itself": UpdatesItself,
    "resets latents": ResetsLatents,
    "logs scalars": LogsScalars,
}


def capabilities(model: nn.Module) -> tuple[str, ...]:
    """Names of a model's capabilities."""
    return tuple(name for name, protocol in CAPABILITIES.items() if isinstance(model, protocol))


DISCRIMINATOR = "discriminator"
"""Name of the discriminator's submodule, and prefix of its logged losses."""
