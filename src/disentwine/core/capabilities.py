"""Capabilities: protocols of what a model can do beyond the contract."""

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

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, channels, height, width) in [0, 1] for codes (n, d)."""
        ...


@runtime_checkable
class Quantizes(Protocol):
    """Codes are indices into codebooks, not quantities: adjacent indices need not look alike.

    Attributes:
        codebook_size: codes in each codebook.
    """

    @property
    def codebook_size(self) -> int: ...

    def indices(self, x: Tensor) -> Tensor:
        """The codes (n, d) of images, as integers."""
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
    """Abduction separate from intervention: inferred once per image, for many interventions on it."""

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
        """The image after an action, or after several; by name or number."""
        ...

    def retrieve(self, x: Any, y: Any) -> Any:
        """(n, actions) the probability of each action, given the images x before and y after it."""
        ...


@runtime_checkable
class EstimatesLikelihood(Protocol):
    """The likelihood of images can be estimated by importance sampling."""

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        """log p(x, z) - log q(z|x) of `samples` samples of z, (samples, n)."""
        ...


class DiscriminatorTraining(NamedTuple):
    """How a discriminator is trained, with an Adam of its own.

    Arguments:
        learning_rate: of Adam; it falls in proportion to the model's.
        betas: of Adam.
        updates: of the discriminator per update of the model.
    """

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    updates: int = 1


@runtime_checkable
class Adversarial(Protocol):
    """The model is trained against a discriminator, its submodule `discriminator`, with a loss of its own.

    Gradients of `loss` reach all other parameters, those of `discriminator_loss` the discriminator
    alone, so neither loss needs to detach anything. Each side changes the loss of the other, so losses
    do not show which weights are best: a training keeps the last ones.
    """

    discriminator_training: DiscriminatorTraining

    def discriminator_loss(self, batch: Batch) -> Losses:
        """The discriminator's loss, term by term, on a batch of its own."""
        ...


@runtime_checkable
class MatchesActions(Protocol):
    """Latent actions can be matched with the names of labelled actions."""

    @property
    def nameless(self) -> bool:
        """Whether actions are latent in training."""
        ...

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Match latent actions with names, by pairs of images and the number (n,) of each pair's action."""
        ...


@runtime_checkable
class UpdatesItself(Protocol):
    """The model updates something itself after each update, such as codebooks by a moving average."""

    def after_update(self) -> None:
        """Called after each update of the parameters."""
        ...


@runtime_checkable
class ResetsLatents(Protocol):
    """Inactive latents can be re-initialised (posterior collapse), so that training can use them."""

    def reset_inactive_latents(self, x: Tensor, *, most: int | None = None) -> tuple[int, ...]:
        """Re-initialise latents that are inactive on images (n, channels, height, width), at most `most`;
        returns their indices."""
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
        """The layer of each latent dimension; 1 is next to the image."""
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
"""Name of the discriminator's submodule, and prefix of its terms in a log."""
