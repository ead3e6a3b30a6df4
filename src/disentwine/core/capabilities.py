"""Protocols of optional model abilities; parameter sets of model and discriminator, freeze."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from disentwine.core.interventions import Intervention
from disentwine.core.model import Batch, Losses
from disentwine.core.types import Do


@runtime_checkable
class Decodes(Protocol):
    """Codes can be turned into images, so that they can be traversed."""

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, channels, height, width) in [0, 1] for codes (n, d)."""
        ...


@runtime_checkable
class Quantizes(Protocol):
    """Codes are names out of codebooks, not quantities: what is next in number need not look alike.

    Attributes:
        codes: how many names there are for each number of a code.
    """

    codes: int

    def indices(self, x: Tensor) -> Tensor:
        """The codes (n, d) that stand for images, as whole numbers."""
        ...


@runtime_checkable
class Generates(Protocol):
    """New images can be drawn."""

    def sample(self, n: int) -> Tensor:
        """Images (n, channels, height, width) in [0, 1] drawn from the model's prior."""
        ...


@runtime_checkable
class Intervenes(Protocol):
    """Concepts can be set, and their effects follow."""

    image_shape: tuple[int, int, int]
    concept_names: tuple[str, ...]

    def reconstruct(self, x: Any) -> Any: ...

    def concepts(self, x: Any) -> Any:
        """The value of each concept in each image, (n, k), in the labels' own units."""
        ...

    @property
    def graph(self) -> Any:
        """What causes what, a `causal.graph.Graph`."""
        ...

    def do(self, x: Any, do: Do | None = None, **values: Any) -> Any:
        """Counterfactual images under an intervention."""
        ...


@runtime_checkable
class Abducts(Protocol):
    """What an image tells can be inferred once and kept, for many interventions on that image."""

    def abduct(self, x: Tensor) -> Any:
        """All that is inferred from images and kept under an intervention."""
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
        """(n, actions) how probable it is that each action made y of x."""
        ...


@runtime_checkable
class EstimatesLikelihood(Protocol):
    """The likelihood of images can be estimated, by importance sampling."""

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        """log p(x, z) - log q(z|x) for so many draws of z, (samples, n)."""
        ...


class DiscriminatorTraining(NamedTuple):
    """How a discriminator is trained: by an Adam of its own.

    Arguments:
        learning_rate: Adam's; where the model's falls, this one falls in proportion.
        betas: Adam's.
        updates: of the discriminator for one of the model.
    """

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    updates: int = 1


@runtime_checkable
class Adversarial(Protocol):
    """The model plays against a discriminator: its submodule `discriminator`, which has a loss of its own.

    The gradient of `loss` is taken for all other parameters, that of `discriminator_loss` for the
    discriminator's alone, so neither needs to detach anything. Which weights are best cannot be told from
    losses that the other side changes: a training keeps the last ones.
    """

    discriminator_training: DiscriminatorTraining

    def discriminator_loss(self, batch: Batch) -> Losses:
        """What the discriminator minimises, term by term, on a batch drawn for it alone."""
        ...


@runtime_checkable
class VariesOneFactor(Protocol):
    """The model learns from batches in which one factor varies and the others are held.

    Attributes:
        varied: the columns of the factors that take turns in varying.
    """

    varied: tuple[int, ...]


@runtime_checkable
class LearnsActions(Protocol):
    """The model learns from pairs of images and the action between them, after it has learnt images.

    Both stages are validated by what they learn from, and the best weights are those of the second.

    Attributes:
        actions: their names.
        pretraining: updates on images alone, before those on pairs.
        joint: whether images are learnt further with the pairs. Otherwise their codes stay as they
            are, and pairs in training are pairs of codes.
        repeats: actions in a row that are learnt from, the same again where it leads on; one if none.
        repeats_from: the update from which on; single actions before. The first if none.
    """

    actions: tuple[str, ...]
    pretraining: int
    joint: bool
    repeats: int | None
    repeats_from: int | None

    def indices(self, x: Tensor) -> Tensor:
        """The codes (n, d) that stand for images, as whole numbers."""
        ...


@runtime_checkable
class MatchesActions(Protocol):
    """Actions may be found without names; some labelled pairs then give them theirs."""

    @property
    def nameless(self) -> bool:
        """Whether nobody says which action it was while the model learns."""
        ...

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Name actions after pairs of images and the number (n,) of each pair's action."""
        ...


@runtime_checkable
class UpdatesItself(Protocol):
    """Something in the model moves by other means than gradients, once after each update."""

    def after_update(self) -> None:
        """Move it."""
        ...


@runtime_checkable
class ResetsLatents(Protocol):
    """Units of the code that say nothing can be made anew, so that training may find a use for them."""

    def reset_inactive_latents(self, x: Tensor, *, most: int | None = None) -> tuple[int, ...]:
        """Make those anew that say nothing of images (n, channels, height, width), at most so many;
        returns which."""
        ...


@runtime_checkable
class LogsScalars(Protocol):
    """There are numbers to watch while the model trains, beside its losses."""

    def log_scalars(self) -> Mapping[str, float]:
        """Numbers by name, such as "A[light->shadow]", as the weights are now."""
        ...


@runtime_checkable
class Hierarchical(Protocol):
    """The code has several layers, each of which says what the layer above left open."""

    @property
    def unit_layers(self) -> tuple[int, ...]:
        """Which layer each number of a code belongs to; 1 is next to the image."""
        ...


CAPABILITIES: dict[str, type] = {
    "decodes": Decodes,
    "quantizes": Quantizes,
    "generates": Generates,
    "intervenes": Intervenes,
    "transitions": AppliesActions,
    "scores": EstimatesLikelihood,
    "layered": Hierarchical,
    "opposed": Adversarial,
    "varies one factor": VariesOneFactor,
    "learns actions": LearnsActions,
    "names actions": MatchesActions,
    "tended": UpdatesItself,
    "revives": ResetsLatents,
    "watched": LogsScalars,
}


def capabilities(model: nn.Module) -> tuple[str, ...]:
    """Names of what a model can do beyond the contract."""
    return tuple(name for name, protocol in CAPABILITIES.items() if isinstance(model, protocol))


DISCRIMINATOR = "discriminator"
"""The submodule that a model plays against, and what its terms' names in a log begin with."""


def discriminator_parameters(model: nn.Module) -> list[nn.Parameter]:
    """What `discriminator_loss` trains; nothing where the model has no discriminator."""
    if not isinstance(model, Adversarial):
        return []
    return [p for p in model.get_submodule(DISCRIMINATOR).parameters() if p.requires_grad]


def own_parameters(model: nn.Module) -> list[nn.Parameter]:
    """What `loss` trains: all parameters but the discriminator's."""
    foreign = set(discriminator_parameters(model))
    return [p for p in model.parameters() if p.requires_grad and p not in foreign]


@contextmanager
def frozen(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Let no gradient reach some parameters, though it may pass through them.

    >>> import torch
    >>> layer, x = nn.Linear(2, 1), torch.zeros(1, 2, requires_grad=True)
    >>> with frozen(layer.parameters()): layer(x).sum().backward()
    >>> layer.weight.grad is None, x.grad is None, layer.weight.requires_grad
    (True, False, True)
    """
    touched = [p for p in parameters if p.requires_grad]
    for parameter in touched:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in touched:
            parameter.requires_grad_(True)
