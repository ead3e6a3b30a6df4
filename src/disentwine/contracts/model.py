"""What a model promises: a loss of named terms, a representation and a reconstruction.

Everything else is a capability that a model declares by having the methods; the command, the page
and the studies ask for capabilities, never for class names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from disentwine.contracts.dataset import Dataset, Do
from disentwine.contracts.schema import check, schema_of
from disentwine.errors import UsageError


class Batch(NamedTuple):
    """What one step of training sees.

    Arguments:
        x: (n, channels, height, width) images in [0, 1].
        u: (n, k) factors in their own units, NaN where an image carries no label.
        step: how many updates were made before this one, for schedules.
        y: what became of each image under an action, where pairs are learnt from.
        action: (n,) the number of that action.
    """

    x: Tensor
    u: Tensor
    step: int = 0
    y: Tensor | None = None
    action: Tensor | None = None


class Losses(NamedTuple):
    r"""Named loss terms $\ell_t$ with their weights $w_t$; the total is $\sum_t w_t\,\bar\ell_t$.

    Arguments:
        terms: each term, one value a sample (n,) or one for the batch ().
        weights: the weight of each term; 1 where none is given. A term of weight 0 is only watched.

    >>> Losses({"reconstruction": torch.tensor([2.0, 4.0]), "kl": torch.tensor([1.0, 1.0])},
    ...        {"kl": 4.0}).total
    tensor(7.)
    """

    terms: Mapping[str, Tensor]
    weights: Mapping[str, float] = MappingProxyType({})

    @property
    def total(self) -> Tensor:
        weighted = [self.weights.get(name, 1.0) * term.mean() for name, term in self.terms.items()]
        return torch.stack(weighted).sum()

    def means(self) -> dict[str, Tensor]:
        """Every term's mean over the batch, and their weighted total as "loss"."""
        return {"loss": self.total.detach()} | {n: t.detach().mean() for n, t in self.terms.items()}


class Model(nn.Module, ABC):
    """A model of images. Subclasses keep every constructor argument as an attribute of its own
    name, so that a recipe can be written from the object, and implement the three methods below.

    Attributes:
        fixed_by_data: constructor arguments that the data set decides, which no recipe sets.
        betas: of the Adam that trains it, where its paper asks for others than usual.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape",)
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """The objective of the paper, term by term, to be minimised."""

    @abstractmethod
    def represent(self, x: Any) -> Any:
        """The code of each image, shape (n, d). Arrays of `uint8` images are welcome."""

    @abstractmethod
    def reconstruct(self, x: Any) -> Any:
        """Each image after passing through its code, in the form it was given."""

    @classmethod
    def for_data(cls, dataset: Dataset, **options: Any) -> Self:
        """Build the model with what the data set decides and your options."""
        cls.check_options(options)
        if all(name in options for name in cls.fixed_by_data):
            return cls(**options)
        return cls(**(cls.data_arguments(dataset, options) | options))

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Refuse what the constructor does not take, all of it in one report."""
        chosen = {name: value for name, value in options.items() if name not in cls.fixed_by_data}
        schema = schema_of(cls, without=cls.fixed_by_data)
        _, problems = check(schema, chosen, section=cls.__name__)
        if problems:
            raise UsageError("; ".join(problems))

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments named in `fixed_by_data`, as JSON has them, read from a data set."""
        return {"image_shape": dataset.image_shape}


def check_fits(model: Model, dataset: Dataset) -> None:
    """Refuse a data set of other images or other concepts than the model was built for."""
    shape: tuple[int, ...] = tuple(getattr(model, "image_shape", dataset.image_shape))
    if shape != tuple(dataset.image_shape):
        raise UsageError(
            f"the model takes images of {' x '.join(map(str, shape))}, and the data set's are "
            f"{' x '.join(map(str, dataset.image_shape))}; build it with {type(model).__name__}.for_data"
        )
    names: tuple[str, ...] = tuple(getattr(model, "concept_names", dataset.names))
    if names != tuple(dataset.names):
        raise UsageError(
            f"the model's concepts are {', '.join(names)}, and the data set's factors are "
            f"{', '.join(dataset.names) or 'none'}; build it with {type(model).__name__}.for_data"
        )


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
        """The picture that would have been, had concepts been different."""
        ...


@runtime_checkable
class Abducts(Protocol):
    """What an image tells can be inferred once and kept, for many interventions on that image."""

    def abduct(self, x: Tensor) -> Any:
        """All that is inferred from images and kept under an intervention."""
        ...

    def intervene(self, latents: Any, do: Do) -> Any:
        """The latents once concepts are set, in the labels' own units, their effects following."""
        ...

    def read(self, latents: Any) -> Tensor:
        """The value of each concept, (n, k), in the labels' own units."""
        ...

    def paint(self, latents: Any) -> Tensor:
        """Images (n, channels, height, width) in [0, 1]."""
        ...


@runtime_checkable
class Transits(Protocol):
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
class Scores(Protocol):
    """The likelihood of images can be estimated, by importance sampling."""

    def log_weights(self, x: Tensor, *, samples: int) -> Tensor:
        """log p(x, z) - log q(z|x) for so many draws of z, (samples, n)."""
        ...


class OpponentTraining(NamedTuple):
    """How an opponent is trained: by an Adam of its own.

    Arguments:
        learning_rate: Adam's; where the model's falls, this one falls in proportion.
        betas: Adam's.
        updates: of the opponent for one of the model.
    """

    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    updates: int = 1


@runtime_checkable
class Opposed(Protocol):
    """The model plays against an opponent: its submodule `opponent`, which has a loss of its own.

    The gradient of `loss` is taken for all other parameters, that of `opponent_loss` for the
    opponent's alone, so neither needs to detach anything. Which weights are best cannot be told from
    losses that the other side changes: a training keeps the last ones.
    """

    opponent_training: OpponentTraining

    def opponent_loss(self, batch: Batch) -> Losses:
        """What the opponent minimises, term by term, on a batch drawn for it alone."""
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
    """

    actions: tuple[str, ...]
    pretraining: int
    joint: bool

    def indices(self, x: Tensor) -> Tensor:
        """The codes (n, d) that stand for images, as whole numbers."""
        ...


@runtime_checkable
class NamesActions(Protocol):
    """Actions may be found without names; some labelled pairs then give them theirs."""

    @property
    def nameless(self) -> bool:
        """Whether nobody says which action it was while the model learns."""
        ...

    def match(self, x: Any, y: Any, action: Any) -> None:
        """Name actions after pairs of images and the number (n,) of each pair's action."""
        ...


@runtime_checkable
class Tended(Protocol):
    """Something in the model moves by other means than gradients, once after each update."""

    def after_update(self) -> None:
        """Move it."""
        ...


@runtime_checkable
class Watched(Protocol):
    """There are numbers to watch while the model trains, beside its losses."""

    def watched(self) -> Mapping[str, float]:
        """Numbers by name, such as "A[light->shadow]", as the weights are now."""
        ...


@runtime_checkable
class Layered(Protocol):
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
    "transitions": Transits,
    "scores": Scores,
    "layered": Layered,
    "opposed": Opposed,
    "varies one factor": VariesOneFactor,
    "learns actions": LearnsActions,
    "names actions": NamesActions,
    "tended": Tended,
    "watched": Watched,
}


def capabilities(model: nn.Module) -> tuple[str, ...]:
    """Names of what a model can do beyond the contract."""
    return tuple(name for name, protocol in CAPABILITIES.items() if isinstance(model, protocol))
